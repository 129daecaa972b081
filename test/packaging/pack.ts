/** Builds the workspace and packs every public package once, for all packaging tests. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { root, runOk } from "./command.js"

export interface Packed {
  readonly name: string
  /** The package's folder in the workspace. */
  readonly folder: string
  readonly tarball: string
}

declare module "vitest" {
  export interface ProvidedContext {
    packed: ReadonlyArray<Packed>
  }
}

export const publicPackages = async (): Promise<ReadonlyArray<{ readonly name: string; readonly folder: string }>> => {
  const folders = await readdir(join(root, "packages"))
  const manifests = await Promise.all(
    folders.map(async (name) => {
      const folder = join(root, "packages", name)
      return { folder, manifest: JSON.parse(await readFile(join(folder, "package.json"), "utf8")) }
    }),
  )
  return manifests
    .filter(({ manifest }) => manifest.private !== true)
    .map(({ folder, manifest }) => ({ folder, name: manifest.name as string }))
}

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const target = await mkdtemp(join(tmpdir(), "cairn-packed-"))
  // `tsc -b` leaves the declarations of a source that is gone, and would publish them.
  for (const { folder } of await publicPackages()) await rm(join(folder, "dist"), { recursive: true, force: true })
  await runOk(root, "npx", ["-y", "pnpm@10", "build"])
  const packed: Array<Packed> = []
  for (const { name, folder } of await publicPackages()) {
    await runOk(folder, "npx", ["-y", "pnpm@10", "pack", "--pack-destination", target])
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"))
    packed.push({ name, folder, tarball: join(target, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`) })
  }
  project.provide("packed", packed)
  return () => rm(target, { recursive: true, force: true })
}
