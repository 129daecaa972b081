/**
 * Writes the JavaScript of every package, beside the declarations that `tsc -b` has written: one file an entry point, and
 * what entry points share in files of their own, so that nothing is there twice. A process that starts reads a few files
 * instead of two hundred. Dependencies stay outside, and so do packages of ours to each other.
 */
import { build } from "esbuild"
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"

const read = (...path) => JSON.parse(readFileSync(join(import.meta.dirname, ...path), "utf8"))

/** The sources behind a package's `exports`. */
const entryPoints = (folder) =>
  Object.values(read(folder, "package.json").exports).flatMap((target) => target["@cairn/source"] ?? [])

/** An import of a dependency of which nothing is used is left out: whoever bundles this would be warned of it. */
const outside = {
  name: "outside",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^[^./]/ }, ({ path }) => ({ path, external: true, sideEffects: false })),
}

for (const { path: folder } of read("tsconfig.json").references) {
  const dist = join(import.meta.dirname, folder, "dist")
  // An earlier build may have written files that this one does not.
  for (const file of readdirSync(dist, { recursive: true })) if (/\.js(\.map)?$/.test(file)) rmSync(join(dist, file))
  await build({
    absWorkingDir: join(import.meta.dirname, folder),
    entryPoints: entryPoints(folder),
    outbase: "src",
    outdir: "dist",
    chunkNames: "shared/[hash]",
    bundle: true,
    splitting: true,
    plugins: [outside],
    format: "esm",
    platform: "node",
    target: "node20.19",
    sourcemap: true,
    // The sources are published too.
    sourcesContent: false,
    logLevel: "warning",
  })
}
