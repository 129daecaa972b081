/** The kit: every case of every law, registered for one driver. */
import assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import { describe, it } from "vitest"
import { isOffered, runCase, type Case } from "./Case.js"
import { answerCases } from "./cases/answer.js"
import { callBeginCases } from "./cases/callBegins.js"
import { callEndCases } from "./cases/callEnds.js"
import { callSumCases } from "./cases/callSums.js"
import { cancelCases } from "./cases/cancel.js"
import { claimCases } from "./cases/claim.js"
import { clockCases } from "./cases/clock.js"
import { commitCases } from "./cases/commit.js"
import { childCases } from "./cases/children.js"
import { createCases } from "./cases/create.js"
import { decisionCases } from "./cases/decision.js"
import { dueCases } from "./cases/due.js"
import { guardCases } from "./cases/guard.js"
import { forkCases } from "./cases/fork.js"
import { historyCases } from "./cases/history.js"
import { identityCases } from "./cases/identity.js"
import { limitCases } from "./cases/limits.js"
import { listCases } from "./cases/list.js"
import { loadCases } from "./cases/load.js"
import { openCases } from "./cases/open.js"
import { outcomeCases } from "./cases/outcome.js"
import { outputCases } from "./cases/outputs.js"
import { parentCases } from "./cases/parent.js"
import { parkCases } from "./cases/park.js"
import { pauseCases } from "./cases/pause.js"
import { reopenCases } from "./cases/reopen.js"
import { rewindCases } from "./cases/rewind.js"
import { reviewCases } from "./cases/review.js"
import { reachedCases } from "./cases/reached.js"
import { recoveryCases } from "./cases/recovery.js"
import { scheduleCases } from "./cases/schedule.js"
import { settledCases } from "./cases/settled.js"
import { signalCases } from "./cases/signal.js"
import { stepsCases } from "./cases/steps.js"
import { textCases } from "./cases/text.js"
import { transactionCases } from "./cases/transaction.js"
import { waitCases } from "./cases/wait.js"
import { wakeUpCases } from "./cases/wakeUp.js"
import { wakingActCases } from "./cases/wakingActs.js"
import { workerCases } from "./cases/worker.js"
import type { Feature, Harness } from "./Harness.js"

const byLaw = (a: Case, b: Case): number => Number(a.law.slice(1)) - Number(b.law.slice(1))

/**
 * All cases, in order of their laws.
 *
 * @category cases
 * @since 0.1.0
 */
export const cases: ReadonlyArray<Case> = [
  ...createCases,
  ...childCases,
  ...commitCases,
  ...guardCases,
  ...claimCases,
  ...dueCases,
  ...clockCases,
  ...outcomeCases,
  ...answerCases,
  ...textCases,
  ...loadCases,
  ...stepsCases,
  ...openCases,
  ...workerCases,
  ...recoveryCases,
  ...settledCases,
  ...transactionCases,
  ...wakeUpCases,
  ...wakingActCases,
  ...signalCases,
  ...parkCases,
  ...cancelCases,
  ...identityCases,
  ...waitCases,
  ...decisionCases,
  ...parentCases,
  ...listCases,
  ...reviewCases,
  ...pauseCases,
  ...reopenCases,
  ...forkCases,
  ...rewindCases,
  ...limitCases,
  ...scheduleCases,
  ...historyCases,
  ...callBeginCases,
  ...callEndCases,
  ...callSumCases,
  ...outputCases,
  ...reachedCases,
].sort(byLaw)

/** A driver that claims to serve several processes has to be tried from more than one side. */
const capabilitiesAreTried: Case = {
  law: "D1",
  title: "the harness tries what the driver's capabilities promise",
  needs: [],
  run: ({ driver, offersSecond, offersWakeUps, store }) =>
    Effect.sync(() => {
      const { name, multiProcess, notify, transactions } = driver.capabilities
      assert.ok(name.length > 0, "the driver has no name")
      assert.equal(driver.onWakeUp !== undefined, notify, "`notify` and `onWakeUp` go together (D18)")
      assert.equal(driver.onReached !== undefined, notify, "`notify` and `onReached` go together (D44)")
      assert.ok(!notify || offersWakeUps, "a driver with `notify` needs a harness that offers `wakeUps`")
      assert.equal(driver.transact !== undefined, transactions, "`transactions` and `transact` go together (D20)")
      assert.ok(
        !transactions || store.ledger !== undefined,
        "a driver with `transactions` needs a harness that offers it",
      )
      assert.ok(!multiProcess || offersSecond, "a driver with `multiProcess` needs a harness that offers `second`")
    }),
}

const everyFeature: ReadonlyArray<Feature | "exactClock"> = [
  "second",
  "ownClock",
  "failAfter",
  "unsafeInteger",
  "unreadable",
  "wakeUps",
  "transactions",
  "exactClock",
]

const timeoutMs = 120_000

/**
 * Registers the kit's cases for a driver, as vitest tests. Call it at the top level of a test file.
 *
 * Cases that need what the harness does not offer are not registered; the suite's title counts them and names the
 * features that they wait for.
 *
 * *Laws.* D1 to D42 of `CheckpointDriver`.
 *
 * @category suites
 * @since 0.1.0
 */
export const storeConformance = (name: string, harness: Harness): void => {
  const offered = cases.filter((one) => isOffered(one, harness))
  const waiting = cases.filter((one) => !isOffered(one, harness))
  const missing = everyFeature.filter((feature) => waiting.some(({ needs }) => needs.includes(feature)))
  const untried = waiting.length === 0 ? "" : `; ${waiting.length} more need ${missing.join(", ")}`
  describe(`store conformance of ${name}: ${offered.length} cases${untried}`, () => {
    for (const one of [capabilitiesAreTried, ...offered]) {
      it(one.title, () => Effect.runPromise(runCase(one, harness)), timeoutMs)
    }
  })
}
