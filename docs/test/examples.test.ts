/**
 * Every TypeScript example of the documentation is compiled and run: those in docstrings, in the guide and in the
 * READMEs. A line `// => value` asserts the expression above it.
 */
import { makeTestDatabase, type TestDatabase } from "@cairn/postgres-server"
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, readFile, rm, writeFile } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import ts from "typescript"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
/** Inside the workspace, so that the packages resolve as they do for a user of it; ignored by git. */
const generated = path.join(root, "docs/.generated")

interface Example {
  readonly from: string
  readonly line: number
  readonly source: string
}

/** What git knows or would add: never what is installed or built. */
const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root, encoding: "utf8" })
  .split("\n")
  .filter((file) => existsSync(path.join(root, file)))

/** Fenced blocks marked `ts`; a docstring's margin of asterisks is cut off first. */
const blocksOf = (from: string, text: string): ReadonlyArray<Example> => {
  const found: Array<Example> = []
  const lines = text.split("\n").map((line) => (from.endsWith(".ts") ? line.replace(/^\s*\* ?/, "") : line))
  let start = -1
  lines.forEach((line, index) => {
    if (start === -1 && line.trim() === "```ts") start = index + 1
    else if (start !== -1 && line.trim() === "```") {
      found.push({ from, line: start + 1, source: lines.slice(start, index).join("\n") })
      start = -1
    }
  })
  return found
}

/** Turns `expression` followed by `// => value` into an assertion. */
const withAssertions = (example: Example): string => {
  const file = ts.createSourceFile("example.ts", example.source, ts.ScriptTarget.ESNext, true)
  let out = 'import { strict as __assert } from "node:assert"\n'
  let at = 0
  for (const statement of file.statements) {
    const expected = /^\s*\n\s*\/\/ => (.*)/.exec(example.source.slice(statement.end))
    if (!ts.isExpressionStatement(statement) || expected === null) continue
    const expression = statement.expression.getText(file)
    out += `${example.source.slice(at, statement.getStart(file))}__assert.deepEqual(${expression}, ${expected[1]!})`
    at = statement.end
  }
  // Files that an example opens lie where this test cleans up.
  return `${out}${example.source.slice(at)}\nexport {}\n`.replaceAll(
    '"runs.sqlite"',
    JSON.stringify(path.join(generated, "runs.sqlite")),
  )
}

const compilerErrors = (files: ReadonlyArray<string>): ReadonlyArray<string> => {
  const { config } = ts.readConfigFile(path.join(root, "tsconfig.base.json"), (file) => ts.sys.readFile(file))
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)
  const program = ts.createProgram([...files], {
    ...options,
    noEmit: true,
    noUnusedLocals: false,
    stripInternal: false,
  })
  return ts
    .getPreEmitDiagnostics(program)
    .map((d) => `${path.basename(d.file?.fileName ?? "")}: ${ts.flattenDiagnosticMessageText(d.messageText, "\n")}`)
}

const sources = files.filter(
  (file) =>
    /^packages\/[^/]+\/src\/.*\.ts$/.test(file) || /^(docs\/guide\/.*|packages\/[^/]+\/README|README)\.md$/.test(file),
)
const examples = (
  await Promise.all(sources.map(async (from) => blocksOf(from, await readFile(path.join(root, from), "utf8"))))
).flat()
const fileOf = (index: number): string => path.join(generated, `example-${index}.ts`)

describe("examples of the documentation", () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await makeTestDatabase()
    process.env["DATABASE_URL"] = database.url
    await rm(generated, { recursive: true, force: true })
    await mkdir(generated, { recursive: true })
    await Promise.all(examples.map((example, index) => writeFile(fileOf(index), withAssertions(example))))
  })
  afterAll(async () => {
    await rm(generated, { recursive: true, force: true })
    await database.drop()
  })

  it("are there", () => {
    expect(examples.length).toBeGreaterThan(12)
    expect(examples.some(({ from }) => from === "README.md")).toBe(true)
    expect(examples.some(({ source }) => source.includes("// =>"))).toBe(true)
  })

  it("compile as they stand", () => {
    expect(compilerErrors(examples.map((_, index) => fileOf(index)))).toEqual([])
  })

  // A suite registers tests, which a running test cannot do: the stores' own tests run the kit.
  const runs = examples
    .map((example, index) => [`${example.from}:${example.line}`, index] as const)
    .filter(([, index]) => !examples[index]!.source.includes("storeConformance("))

  it.each(runs)("run as they stand: %s", async (_, index) => {
    await expect(import(/* @vite-ignore */ pathToFileURL(fileOf(index)).href)).resolves.toBeDefined()
  })
})
