/**
 * Adds up the test runner's reports and prints the closing line. Ends with 1 when a test failed or was skipped, or when
 * a test file of the tree is in none of the reports: a run that has lost its tests must not look like one that passed.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, relative, resolve } from "node:path"

const root = resolve(import.meta.dirname, "..")
const aside = new Set(["node_modules", "dist", ".git", "benchmarks"])

const testFilesUnder = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return aside.has(entry.name) ? [] : testFilesUnder(path)
    return /\.test\.[cm]?[jt]sx?$/.test(entry.name) ? [path] : []
  })

const missingReport = { success: false, numPassedTests: 0, numFailedTests: 0, testResults: [] }
const reports = process.argv
  .slice(2)
  .map((path) => (existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { ...missingReport, path }))

const results = reports.flatMap(({ testResults }) => testResults)
const assertions = results.flatMap(({ assertionResults }) => assertionResults)
const count = (status) => assertions.filter((each) => each.status === status).length

const ran = new Set(results.map(({ name }) => resolve(name)))
const lost = testFilesUnder(root).filter((path) => !ran.has(path))
// A file that cannot be loaded fails without a failed test in it.
const broken = results.filter(
  ({ status, assertionResults }) => status === "failed" && !assertionResults.some((each) => each.status === "failed"),
)
const skipped = assertions.filter(({ status }) => status !== "passed" && status !== "failed")

const complaints = [
  ...reports.filter(({ path }) => path !== undefined).map(({ path }) => `no report at ${path}`),
  ...lost.map((path) => `never ran: ${relative(root, path)}`),
  ...broken.map(({ name }) => `could not be run: ${relative(root, name)}`),
  ...skipped.map(({ fullName, status }) => `${status}: ${fullName}`),
]
for (const complaint of complaints) console.log(complaint)

const passed = count("passed")
const named = count("failed") + complaints.length
// An error outside any test leaves the runner unhappy with every test green.
const failed = named === 0 && (passed === 0 || reports.some(({ success }) => !success)) ? 1 : named
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
