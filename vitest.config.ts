import { configDefaults, defineConfig } from "vitest/config"

// Tests run from source: the packages' exports offer it under this condition.
const conditions = ["@cairn/source"]

// `.ci/run` asks for a report by this name, and counts what it holds.
const report = process.env["CAIRN_TEST_REPORT"]

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: [
      "packages/*/test/**/*.test.ts",
      "examples/*/test/**/*.test.ts",
      "docs/test/**/*.test.ts",
      "chaos/test/**/*.test.ts",
      "test/**/*.test.ts",
    ],
    // These need the registry and a build: `pnpm test:packaging`.
    exclude: [...configDefaults.exclude, "test/packaging/**"],
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    // One Postgres a run, started when the first test file asks for it.
    globalSetup: ["packages/postgres-server/src/globalSetup.ts"],
    // Child processes that are killed and restarted take their time on two cores.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    minWorkers: 1,
  },
})
