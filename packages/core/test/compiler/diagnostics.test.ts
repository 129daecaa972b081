/** Holds the lists together: codes, writers, checks, pages, tests. And compiles every page's programs. */
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { Cause, Effect, Exit, Layer } from "effect"
import ts from "typescript"
import { beforeAll, describe, expect, it } from "vitest"
import { Cairn, diagnosticCodes, MemoryStore, Worker, type DiagnosticCode } from "../../src/index.js"
import * as core from "../../src/index.js"
import { errorsIn, programOf } from "../types/typescript.js"

const root = new URL("../../../../", import.meta.url)
const textOf = (path: string): string => readFileSync(new URL(path, root), "utf8")
const filesUnder = (path: string, pattern: RegExp): ReadonlyArray<string> =>
  readdirSync(new URL(path, root), { recursive: true, encoding: "utf8" })
    .filter((name) => pattern.test(name) && !name.includes("node_modules"))
    .map((name) => `${path}/${name}`)

const codes = Object.keys(diagnosticCodes) as ReadonlyArray<DiagnosticCode>

/** Who finds a page's wrong program. */
type Finder = "types" | "compile" | "worker" | "run"
const finders: Readonly<Record<DiagnosticCode, ReadonlyArray<Finder>>> = {
  CRN101: ["types", "compile"],
  CRN102: ["types", "run"],
  CRN103: ["types"],
  CRN104: ["types", "compile"],
  CRN105: ["types", "compile"],
  CRN106: ["types", "worker"],
  CRN107: ["types"],
  CRN108: ["types", "compile"],
  CRN109: ["run"],
  CRN110: ["compile"],
  CRN111: ["types", "compile"],
}

const block = (page: string, info: string): string => {
  const found = new RegExp(`\`\`\`${info}\n([\\s\\S]*?)\`\`\``).exec(page)
  if (found === null) throw new Error(`the page has no block '${info}'`)
  return found[1]!
}

const pages = codes.map((code) => {
  const page = textOf(`docs/diagnostics/${code}.md`)
  return {
    code,
    page,
    wrong: block(page, "ts wrong"),
    right: block(page, "ts right"),
    message: block(page, "text").trim(),
  }
})

/** Runs a page's program without its types, as a caller without types would. */
const evaluate = (text: string): any => {
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
  })
  const exports = {}
  const require = createRequire(import.meta.url)
  const load = (name: string): unknown => (name === "@cairn/core" ? core : require(name))
  // Effect is loaded by its own import elsewhere in this file, so its modules are shared through this map.
  new Function("exports", "require", outputText)(exports, (name: string) => (name === "effect" ? effect : load(name)))
  return exports
}
let effect: unknown

const runTo = (workflow: any, handlers: Layer.Layer<any>, input: unknown): Promise<Exit.Exit<unknown, unknown>> =>
  Effect.gen(function* () {
    const handle = yield* Cairn.start(workflow, input as never)
    return yield* handle.result
  }).pipe(
    Effect.provide(
      Worker.layer({ workflows: [workflow] }).pipe(Layer.provide(handlers), Layer.provideMerge(MemoryStore.layer)),
    ),
    Effect.exit,
    (run) => Effect.runPromise(run as Effect.Effect<Exit.Exit<unknown, unknown>>),
  )

const textOfExit = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isSuccess(exit)
    ? ""
    : Cause.prettyErrors(exit.cause)
        .map((error) => error.message)
        .join("\n")

/** What one finder says of a page's program. */
const says = async (finder: Finder, text: string, errors: ReadonlyArray<string>): Promise<string> => {
  if (finder === "types") return errors.join("\n")
  const program = evaluate(text)
  if (finder === "compile") return program.workflow.diagnostics.map((d: { message: string }) => d.message).join("\n")
  if (finder === "worker") return textOfExit(await Effect.runPromise(Effect.exit(program.main)))
  return textOfExit(await runTo(program.workflow, program.handlers, { customer: "c", cents: 1 }))
}

describe("the lists of diagnostics", () => {
  const writers = textOf("packages/core/src/model/DiagnosticCode.ts")
  const sources = filesUnder("packages/core/src", /\.ts$/).filter((name) => !name.endsWith("DiagnosticCode.ts"))
  const tests = filesUnder("packages/core/test", /\.(test|tst)\.ts$/).filter(
    (name) => !name.endsWith("diagnostics.test.ts"),
  )

  it("are not empty", () => {
    expect(codes.length).toBeGreaterThanOrEqual(11)
    expect(sources.length).toBeGreaterThanOrEqual(40)
    expect(tests.length).toBeGreaterThanOrEqual(10)
  })

  it.each(codes)("%s has a writer that something uses", (code) => {
    const names = [...writers.matchAll(new RegExp(`export const (\\w+)[^]*?(?=\\nexport |\\n// ----|$)`, "g"))]
      .filter((match) => match[0].includes(`"${code}: `) || match[0].includes(`\`${code}: `))
      .map((match) => match[1]!)
    expect(names.length).toBeGreaterThan(0)
    for (const name of names) {
      const users = sources.filter((source) => new RegExp(`\\b${name}\\b`).test(textOf(source)))
      expect(users, `${name} is written for nobody`).not.toEqual([])
    }
  })

  it.each(codes)("%s is found by a check, by the types or at a named place of the runtime", (code) => {
    const rooms = /src\/(builder|compiler|dsl|runtime)\//
    const used = sources.filter((source) => rooms.test(source) && textOf(source).includes(`"${code}"`))
    expect(used, `${code} is found nowhere`).not.toEqual([])
  })

  it.each(codes)("%s has a test", (code) => {
    expect(tests.filter((test) => textOf(test).includes(code))).not.toEqual([])
  })

  it.each(codes)("%s has a page with its title, and stands in the index", (code) => {
    expect(textOf(`docs/diagnostics/${code}.md`).startsWith(`# ${code}: ${diagnosticCodes[code]}\n`)).toBe(true)
    const index = textOf("docs/diagnostics/README.md").replaceAll(/ +/g, " ")
    expect(index).toContain(`| [${code}](${code}.md) | ${diagnosticCodes[code]} |`)
  })

  it("there is no page without a code", () => {
    expect(
      filesUnder("docs/diagnostics", /^CRN.*\.md$/)
        .map((name) => /CRN\d+/.exec(name)![0])
        .sort(),
    ).toEqual([...codes].sort())
  })
})

describe("the programs of the pages", () => {
  let errors: (name: string) => ReadonlyArray<string>
  beforeAll(async () => {
    effect = await import("effect")
    const files = Object.fromEntries(
      pages.flatMap(({ code, wrong, right }) => [
        [`${code}.wrong.ts`, wrong],
        [`${code}.right.ts`, right],
      ]),
    )
    const program = programOf(files)
    errors = (name) => errorsIn(program, [name])
  })

  const found = pages.flatMap(({ code, wrong, message }) =>
    finders[code].map((finder) => ({ code, finder, wrong, message })),
  )

  it.each(found)(
    "$code: the wrong one is found by $finder, in the words of the page",
    async ({ code, finder, wrong, message }) => {
      const said = await says(finder, wrong, errors(`${code}.wrong.ts`))
      // The type of a store cannot name the step; it says the same with less.
      expect(said).toContain(
        code === "CRN106" && finder === "types" ? "CRN106: a transaction step needs a store" : message,
      )
      expect(new Set(said.match(/CRN\d{3}/g))).toEqual(new Set([code]))
    },
  )

  it.each(pages)("$code: the right one has no error and no diagnostic", ({ code, right }) => {
    expect(errors(`${code}.right.ts`)).toEqual([])
    expect(evaluate(right).workflow.diagnostics).toEqual([])
  })

  it("the right program of CRN109 runs to its end, with and without its operation", async () => {
    const { workflow, handlers } = evaluate(pages.find(({ code }) => code === "CRN109")!.right)
    for (const cents of [1, 1_000]) {
      expect(Exit.isSuccess(await runTo(workflow, handlers, { customer: "c", cents }))).toBe(true)
    }
  })

  it.each(pages)("$code: the page is short", ({ page }) => {
    expect(page.split("\n").length).toBeLessThan(90)
  })
})
