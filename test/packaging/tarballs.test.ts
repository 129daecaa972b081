/** What a package brings along: looked at in the tarball that would be published. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, normalize } from "node:path"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { root, run, runOk } from "./command.js"

const packed = inject("packed")

const filesUnder = async (folder: string): Promise<ReadonlyArray<string>> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}

it("packs at least the four packages that are public now", () => {
  expect(packed.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["@cairn/conformance", "@cairn/core", "@cairn/sql", "@cairn/sqlite"]),
  )
})

describe.each(packed.map((each) => [each.name, each] as const))("%s", (_, { folder, tarball }) => {
  let unpacked: string
  let files: ReadonlyArray<string>
  let manifest: Record<string, any>

  beforeAll(async () => {
    unpacked = await mkdtemp(join(tmpdir(), "cairn-tarball-"))
    await runOk(unpacked, "tar", ["xzf", tarball, "--strip-components=1"])
    files = await filesUnder(unpacked)
    manifest = JSON.parse(await readFile(join(unpacked, "package.json"), "utf8"))
  })

  afterAll(() => rm(unpacked, { recursive: true, force: true }))

  it("holds its build, its sources, its licence and its page, and nothing else", () => {
    const roots = new Set(files.map((file) => file.split("/")[0]))
    expect([...roots].sort()).toEqual(["LICENSE", "README.md", "dist", "package.json", "src"])
    expect(files.filter((file) => /\.tsbuildinfo$|\.tgz$|\.(test|tst)\.|node_modules/.test(file))).toEqual([])
  })

  it("holds the declarations of each source, and none of a source that is gone", () => {
    const sources = files.filter((file) => file.startsWith("src/")).map((file) => file.slice(4, -".ts".length))
    const declared = files.filter((file) => file.endsWith(".d.ts")).map((file) => file.slice(5, -".d.ts".length))
    expect([...declared].sort()).toEqual([...sources].sort())
  })

  it("holds one file of code an entry point, and what they share apart", () => {
    const targets = Object.values<any>(manifest["exports"]).filter((target) => typeof target === "object")
    const entries = targets.map((target) => normalize(target.default))
    const built = files.filter((file) => file.endsWith(".js"))
    expect(entries).toContain("dist/index.js")
    expect(built.filter((file) => !file.startsWith("dist/shared/")).sort()).toEqual([...entries].sort())
  })

  it("holds the code of each source once: a class that is there twice is two classes", async () => {
    const maps = files.filter((file) => file.endsWith(".js.map"))
    const sources = await Promise.all(
      maps.map(async (map): Promise<ReadonlyArray<string>> => {
        const read = JSON.parse(await readFile(join(unpacked, map), "utf8"))
        return read.sources.map((source: string) => normalize(join(dirname(map), source)))
      }),
    )
    expect(sources.flat().length).toBeGreaterThan(0)
    expect([...sources.flat()].sort()).toEqual([...new Set(sources.flat())].sort())
  })

  it("has maps whose sources are in the tarball", async () => {
    const maps = files.filter((file) => file.endsWith(".map"))
    expect(maps.length).toBeGreaterThan(0)
    for (const map of maps) {
      const { sources } = JSON.parse(await readFile(join(unpacked, map), "utf8"))
      for (const source of sources) expect(files).toContain(normalize(join(dirname(map), source)))
    }
  })

  it("names its relatives by real ranges, and shares effect with its user", async () => {
    const ranges = { ...manifest["dependencies"], ...manifest["peerDependencies"] } as Record<string, string>
    expect(Object.values(ranges).filter((range) => /^(workspace|file|link|catalog):/.test(range))).toEqual([])
    expect(Object.entries(ranges).filter(([, range]) => /^\d/.test(range))).toEqual([])
    expect(manifest["peerDependencies"]["effect"]).toMatch(/^\^3\./)
    expect(manifest["dependencies"]?.["effect"]).toBeUndefined()
    const written = JSON.parse(await readFile(join(folder, "package.json"), "utf8"))
    for (const name of Object.keys(written.peerDependencies).filter((each) => each.startsWith("@cairn/"))) {
      expect(ranges[name]).toMatch(/^\^\d+\.\d+\.\d+/)
    }
  })

  it("is clean to publint", async () => {
    const { code, text } = await run(unpacked, join(root, "node_modules/.bin/publint"), ["--strict", tarball])
    expect(text).toContain("All good!")
    expect(code).toBe(0)
  })

  it("is clean to are-the-types-wrong, as an ESM package", async () => {
    const { code, text } = await run(unpacked, join(root, "node_modules/.bin/attw"), ["--profile", "esm-only", tarball])
    expect(text).toContain("node16 (from ESM)")
    expect(code, text).toBe(0)
  })
})
