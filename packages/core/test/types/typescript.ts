/** The TypeScript compiler over programs held in memory: what a build prints, and what an editor shows. */
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"

const here = dirname(fileURLToPath(import.meta.url))
const configPath = join(here, "tsconfig.json")
const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(configPath, ts.sys.readFile).config,
  { ...ts.sys, readDirectory: () => [] },
  here,
)

/** Where the programs pretend to lie: beside this file, so that their imports resolve as a test's do. */
const pathOf = (name: string): string => resolve(here, name)

// Library and source files are parsed once for all programs of a test file.
const parsed = new Map<string, ts.SourceFile | undefined>()

/** A program over files that need not exist. */
export const programOf = (files: Readonly<Record<string, string>>): ts.Program => {
  const texts = new Map(Object.entries(files).map(([name, text]) => [pathOf(name), text]))
  const host = ts.createCompilerHost(options)
  const fromDisk = host.getSourceFile.bind(host)
  host.getSourceFile = (fileName, languageVersion) => {
    const text = texts.get(fileName)
    if (text !== undefined) return ts.createSourceFile(fileName, text, languageVersion, true)
    if (!parsed.has(fileName)) parsed.set(fileName, fromDisk(fileName, languageVersion))
    return parsed.get(fileName)
  }
  const exists = host.fileExists.bind(host)
  host.fileExists = (fileName) => texts.has(fileName) || exists(fileName)
  const read = host.readFile.bind(host)
  host.readFile = (fileName) => texts.get(fileName) ?? read(fileName)
  return ts.createProgram([...texts.keys()], { ...options, incremental: false, composite: false, noEmit: true }, host)
}

/** Everything that a build would print for these files, one text an error, continuation lines included. */
export const errorsIn = (program: ts.Program, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.flatMap((name) => {
    const file = program.getSourceFile(pathOf(name))
    if (file === undefined) throw new Error(`${name} is not part of the program`)
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(
      (d) => `TS${d.code}: ${ts.flattenDiagnosticMessageText(d.messageText, "\n")}`,
    )
  })

/** The errors of one program text. */
export const errorsOf = (text: string): ReadonlyArray<string> =>
  errorsIn(programOf({ "program.ts": text }), ["program.ts"])

/** The declaration file of one program text. */
export const declarationOf = (text: string): string => {
  const fileName = pathOf("program.ts")
  const source = programOf({ "program.ts": text })
  const emitting = { ...options, composite: false, incremental: false, declaration: true, emitDeclarationOnly: true }
  const host = ts.createCompilerHost(emitting)
  host.getSourceFile = (name) => source.getSourceFile(name)
  let declaration = ""
  ts.createProgram([fileName], { ...emitting, noEmit: false, declarationMap: false }, host).emit(
    source.getSourceFile(fileName),
    (_, written) => (declaration = written),
    undefined,
    true,
  )
  return declaration
}

/** What an editor shows for the identifier that stands before the first `/*^*\/` in a program. */
export const hoverOf = (text: string): string => {
  const position = text.indexOf("/*^*/")
  if (position < 0) throw new Error("the program has no marker")
  const fileName = pathOf("hover.ts")
  const host: ts.LanguageServiceHost = {
    getScriptFileNames: () => [fileName],
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) => {
      const found = name === fileName ? text : ts.sys.readFile(name)
      return found === undefined ? undefined : ts.ScriptSnapshot.fromString(found)
    },
    getCurrentDirectory: () => here,
    getCompilationSettings: () => ({ ...options, incremental: false, composite: false, noEmit: true }),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (name) => name === fileName || ts.sys.fileExists(name),
    readFile: (name) => (name === fileName ? text : ts.sys.readFile(name)),
  }
  const info = ts.createLanguageService(host).getQuickInfoAtPosition(fileName, position - 1)
  return ts.displayPartsToString(info?.displayParts)
}
