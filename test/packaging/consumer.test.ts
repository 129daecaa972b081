/** The tarballs, installed by npm into an empty folder, on plain Node: no flag, no condition, no workspace. */
import { copyFile, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { build } from "esbuild"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { root, run, runOk } from "./command.js"

const packed = inject("packed")
const fixtures = join(import.meta.dirname, "fixtures")

const tarballOf = (name: string): string => {
  const found = packed.find((each) => each.name === name)
  if (found === undefined) throw new Error(`${name} is not packed`)
  return found.tarball
}

const emptyProject = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "cairn-consumer-"))
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }))
  return folder
}

const npmInstall = (folder: string, args: ReadonlyArray<string>): Promise<string> =>
  runOk(folder, "npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", ...args])

describe("the core in a project of its own", () => {
  let project: string

  beforeAll(async () => {
    project = await emptyProject()
    await npmInstall(project, [tarballOf("@cairn/core"), "effect@^3.22.0"])
  })

  afterAll(() => rm(project, { recursive: true, force: true }))

  it("is imported", async () => {
    const script = `import("@cairn/core").then((core) => console.log(typeof core.Workflow.make))`
    expect(await runOk(project, "node", ["-e", script])).toBe("function\n")
  })

  it("is required, and is then the same copy as the imported one", async () => {
    const script = `
      const core = require("@cairn/core")
      import("@cairn/core").then((again) => console.log(typeof core.compile, core.Workflow === again.Workflow))`
    await writeFile(join(project, "required.cjs"), script)
    expect(await runOk(project, "node", ["--no-warnings", "required.cjs"])).toBe("function true\n")
  })

  const typed: ReadonlyArray<readonly [title: string, file: string, options: Record<string, string>]> = [
    ["node16, from an ES module", "program.mts", { module: "node16", moduleResolution: "node16" }],
    ["nodenext, from an ES module", "program.mts", { module: "nodenext", moduleResolution: "nodenext" }],
    ["nodenext, from a CommonJS module", "program.cts", { module: "nodenext", moduleResolution: "nodenext" }],
    ["bundler", "program.ts", { module: "preserve", moduleResolution: "bundler" }],
  ]

  it.each(typed)("has types under %s", async (_, file, options) => {
    await copyFile(join(fixtures, "charge-and-mail.ts"), join(project, file))
    await writeFile(
      join(project, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          ...options,
          target: "es2022",
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: false,
          // A library built on this one writes declarations: every inferred type must have a name that it can reach.
          declaration: true,
          outDir: "out",
        },
        files: [file],
      }),
    )
    const { code, text } = await run(project, join(root, "node_modules/.bin/tsc"), ["-p", "."])
    expect(code, text).toBe(0)
  })

  it("understands what a second copy of itself has made", async () => {
    const second = join(project, "node_modules/@second/core")
    await mkdir(second, { recursive: true })
    await runOk(second, "tar", ["xzf", tarballOf("@cairn/core"), "--strip-components=1"])
    await copyFile(join(fixtures, "two-copies.mjs"), join(project, "two-copies.mjs"))
    expect(await runOk(project, "node", ["two-copies.mjs"])).toBe("understood\n")
  })
})

describe("the SQLite store in a project of its own", () => {
  let project: string

  /** The addon that the workspace has built already: compiling it again takes a minute and a half, and tests nothing. */
  const builtAddon = async (): Promise<{ readonly version: string; readonly release: string }> => {
    const sqlite = createRequire(join(root, "packages/sqlite/package.json"))
    const manifest = sqlite.resolve("better-sqlite3/package.json")
    return { version: sqlite(manifest).version, release: join(dirname(manifest), "build/Release") }
  }

  beforeAll(async () => {
    project = await emptyProject()
    const { version, release } = await builtAddon()
    await npmInstall(project, [
      "--ignore-scripts",
      tarballOf("@cairn/core"),
      tarballOf("@cairn/sql"),
      tarballOf("@cairn/sqlite"),
      "effect@^3.22.0",
      `better-sqlite3@${version}`,
    ])
    await copyFile(join(fixtures, "runs-on-a-file.mjs"), join(project, "runs-on-a-file.mjs"))
    await cp(release, join(project, "node_modules/better-sqlite3/build/Release"), { recursive: true })
  })

  afterAll(() => rm(project, { recursive: true, force: true }))

  it("runs a workflow on a file, and attaches to it after a restart", async () => {
    expect(await runOk(project, "node", ["runs-on-a-file.mjs"])).toBe("1 charge\n")
  })

  it("runs the same as one file, which a bundler has made of it and all that it needs but the addon", async () => {
    const folder = join(project, "shipped")
    const { metafile, warnings } = await build({
      absWorkingDir: project,
      stdin: { contents: `import "./runs-on-a-file.mjs"`, resolveDir: project },
      outfile: join(folder, "worker.mjs"),
      external: ["better-sqlite3"],
      bundle: true,
      format: "esm",
      platform: "node",
      metafile: true,
      logLevel: "silent",
    })
    expect(warnings).toEqual([])
    // Nothing of effect is there twice: as an ES module and as CommonJS.
    expect(Object.keys(metafile.inputs).filter((input) => input.includes("effect/dist/cjs"))).toEqual([])
    expect(await runOk(folder, "node", ["worker.mjs"])).toBe("1 charge\n")
  })

  it("brings one copy of the core and one of effect", async () => {
    const tree = JSON.parse(await runOk(project, "npm", ["ls", "--all", "--json", "@cairn/core", "effect"]))
    const versions = new Map<string, Set<string>>()
    const visit = (dependencies: Record<string, any> = {}): void => {
      for (const [name, node] of Object.entries(dependencies)) {
        if (node.version !== undefined) versions.set(name, (versions.get(name) ?? new Set()).add(node.version))
        visit(node.dependencies)
      }
    }
    visit(tree.dependencies)
    expect(versions.get("@cairn/core")?.size).toBe(1)
    expect(versions.get("effect")?.size).toBe(1)
  })
})
