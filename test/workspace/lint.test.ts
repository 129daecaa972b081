/**
 * The linter's own test: every layer rule is broken once, in a copy of the tree, and must be reported. A rule whose
 * pattern has gone blind (a folder renamed, an override shadowed by a later one) passes on everything and says nothing.
 */
import { execFile } from "node:child_process"
import { copyFile, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = resolve(import.meta.dirname, "../..")

const rooms = ["model", "dsl", "store", "compiler", "builder", "runtime"] as const
type Room = (typeof rooms)[number]

const mayImport: Record<Room, ReadonlyArray<Room>> = {
  model: [],
  dsl: ["model"],
  store: ["model"],
  compiler: ["model", "dsl"],
  builder: ["model", "dsl", "compiler"],
  runtime: ["model", "dsl", "store", "compiler", "builder"],
}

const packages = [
  "core",
  "sql",
  "sqlite",
  "postgres",
  "conformance",
  "testing",
  "ai",
  "check",
  "langgraph",
  "cli",
] as const
type Package = (typeof packages)[number]

const mayDependOn: Partial<Record<Package, ReadonlyArray<Package>>> = {
  core: [],
  sql: ["core"],
  sqlite: ["core", "sql"],
  postgres: ["core", "sql"],
  conformance: ["core"],
  testing: ["core"],
  ai: ["core"],
}

interface Case {
  readonly title: string
  readonly file: string
  readonly text: string
  /** The rules that must report the file; none: it is clean. */
  readonly broken: ReadonlyArray<string>
}

const restricted = "eslint(no-restricted-imports)"
const slug = (text: string): string => text.replace(/[^a-z]+/gi, "-")

const oneImport = (folder: string, specifier: string, broken: boolean): Case => ({
  title: `${folder} ${broken ? "may not" : "may"} import ${specifier}`,
  file: `${folder}/${slug(specifier)}.ts`,
  text: `import { thing } from "${specifier}"\nexport const other = thing\n`,
  broken: broken ? [restricted] : [],
})

const pairs = <A extends string>(all: ReadonlyArray<A>): ReadonlyArray<readonly [A, A]> =>
  all.flatMap((from) => all.filter((to) => to !== from).map((to) => [from, to] as const))

const roomCases = pairs(rooms).flatMap(([from, to]) => {
  const broken = !mayImport[from].includes(to)
  return [
    oneImport(`packages/core/src/${from}`, `../${to}/Thing.js`, broken),
    oneImport(`packages/core/src/${from}/internal/deep`, `../../../${to}/internal/thing.js`, broken),
  ]
})

const packageCases = pairs(packages).map(([from, to]) => {
  const allowed = mayDependOn[from] ?? packages
  return oneImport(`packages/${from}/src`, `@cairn/${to}`, to === "cli" || !allowed.includes(to))
})

const otherForms: ReadonlyArray<Case> = [
  {
    title: "a type import counts as an import",
    file: "packages/core/src/model/typeImport.ts",
    text: `import type { Engine } from "../runtime/Engine.js"\nexport type Mine = Engine\n`,
    broken: [restricted],
  },
  {
    title: "a re-export counts as an import",
    file: "packages/core/src/dsl/reExport.ts",
    text: `export { Engine } from "../runtime/Engine.js"\n`,
    broken: [restricted],
  },
  {
    title: "the index of the core may import the runtime",
    file: "packages/core/src/index.ts",
    text: `export { Engine } from "./runtime/Engine.js"\n`,
    broken: [],
  },
  {
    title: "the index of the core may not import another package",
    file: "packages/core/src/other.ts",
    text: `export { SqlDriver } from "@cairn/sql"\n`,
    broken: [restricted],
  },
  ...rooms.map((room) => oneImport(`packages/core/src/${room}`, "../index.js", true)),
  ...rooms.map((room) => oneImport(`packages/core/src/${room}`, "@cairn/sql", true)),
  ...[...rooms.map((room) => `packages/core/src/${room}`), ...packages.map((name) => `packages/${name}/src`)].map(
    (folder) => oneImport(folder, "../../../../packages/elsewhere/src/Thing.js", true),
  ),
  oneImport("packages/sqlite/src", "../../sql/src/Thing.js", true),
  oneImport("packages/testing/src", "@cairn/core/dist/runtime/Engine.js", true),
  oneImport("packages/conformance/test", "@cairn/sqlite", false),
  oneImport("examples/01-invoice/src", "@cairn/cli", true),
  {
    title: "a default export is refused",
    file: "packages/sql/src/defaultExport.ts",
    text: "export default 1\n",
    broken: ["import(no-default-export)"],
  },
  {
    title: "a config file may have a default export",
    file: "vitest.config.ts",
    text: "export default {}\n",
    broken: [],
  },
  {
    title: "export * is refused",
    file: "packages/sql/src/index.ts",
    text: `export * from "./one.js"\n`,
    broken: ["cairn(no-export-all)"],
  },
  {
    title: "export * under a name is a name",
    file: "packages/sql/src/named.ts",
    text: `export * as Three from "./three.js"\n`,
    broken: [],
  },
  {
    title: "a cycle is refused at its one end",
    file: "packages/sql/src/one.ts",
    text: `import { two } from "./two.js"\nexport const one = (): number => two()\n`,
    broken: ["import(no-cycle)"],
  },
  {
    title: "a cycle is refused at its other end",
    file: "packages/sql/src/two.ts",
    text: `import { one } from "./one.js"\nexport const two = (): number => one()\n`,
    broken: ["import(no-cycle)"],
  },
]

const cases = [...roomCases, ...packageCases, ...otherForms]

interface Report {
  readonly number_of_files: number
  readonly diagnostics: ReadonlyArray<{ readonly code: string; readonly filename: string }>
}

/** oxlint ends with 1 when it found something, so only its report says whether it ran. */
const lint = (folder: string): Promise<Report> =>
  new Promise((done, fail) => {
    execFile(
      join(root, "node_modules/.bin/oxlint"),
      ["--format", "json"],
      { cwd: folder, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        try {
          done(JSON.parse(stdout) as Report)
        } catch {
          fail(new Error(`oxlint gave no report: ${stdout}${stderr}`, { cause: error }))
        }
      },
    )
  })

describe("the linter", () => {
  let folder: string
  let report: Report

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "cairn-lint-"))
    await copyFile(join(root, ".oxlintrc.json"), join(folder, ".oxlintrc.json"))
    await cp(join(root, ".oxlint"), join(folder, ".oxlint"), { recursive: true })
    for (const { file, text } of cases) {
      await mkdir(dirname(join(folder, file)), { recursive: true })
      await writeFile(join(folder, file), text)
    }
    report = await lint(folder)
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  it("reads every file of the broken tree", () => {
    expect(new Set(cases.map(({ file }) => file)).size).toBe(cases.length)
    expect(report.number_of_files).toBeGreaterThanOrEqual(cases.length)
  })

  it.each(cases.map((each) => [each.title, each] as const))("%s", (_, { file, broken }) => {
    const reported = report.diagnostics.filter(({ filename }) => filename === file).map(({ code }) => code)
    expect([...new Set(reported)]).toEqual(broken)
  })
})
