import { defineConfig } from "vitest/config"

const report = process.env["CAIRN_TEST_REPORT"]

export default defineConfig({
  test: {
    include: ["test/packaging/**/*.test.ts"],
    globalSetup: ["test/packaging/pack.ts"],
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    // npm fetches the peers from the registry here.
    testTimeout: 120_000,
    hookTimeout: 300_000,
    // The tests share what is packed and installed once.
    fileParallelism: false,
  },
})
