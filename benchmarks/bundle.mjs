/**
 * Makes one file of each engine's process, `dist/one/<engine>.mjs`, as applications are shipped: run after `tsc -p benchmarks`.
 * What has code of the machine's own stays outside, and so does what a client asks for only to see whether it is there.
 */
import { build } from "esbuild"
import { join } from "node:path"
import { engines } from "./dist/catalog.js"

// It asks for packages that it does not bring, and does not wait to see whether they are there.
const asModules = ["dbos"]

/** The catalog of a process that has one engine in it. */
const only = (engine) => ({
  name: "only",
  setup: ({ onLoad }) =>
    onLoad({ filter: /dist.catalog\.js$/ }, () => ({
      contents: `import { subjects } from "./subjects/${engine}.js"; export const load = async () => subjects`,
    })),
})

for (const engine of engines.filter((name) => !asModules.includes(name)))
  await build({
    entryPoints: [join(import.meta.dirname, "dist/child.js")],
    outfile: join(import.meta.dirname, `dist/one/${engine}.mjs`),
    plugins: [only(engine)],
    external: ["better-sqlite3", "pg-native"],
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    // For packages that are CommonJS, and ask for what Node brings.
    banner: { js: 'import { createRequire as _makeRequire } from "node:module"; const require = _makeRequire(import.meta.url)' },
    logLevel: "warning",
  })
