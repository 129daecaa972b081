/**
 * The people who answer for an operation whose outcome is unknown. They ask the provider and say what it knows: two at
 * once, of whom one is heard; a third comes late and is wrong, and nobody listens.
 */
import {
  Cairn,
  CheckpointStore,
  type AnyWorkflow,
  type CheckpointStoreService,
  type EffectRecord,
  type OutcomeAnswer,
  type RunRecord,
} from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as EffectSchedule from "effect/Schedule"
import type { Findings } from "./findings.js"
import type { SimulatedProvider } from "./provider.js"

export interface PeopleOptions {
  readonly workflow: AnyWorkflow
  readonly store: CheckpointStoreService
  readonly provider: SimulatedProvider
  readonly findings: Findings
}

const truthOf = (provider: SimulatedProvider, { operation, idempotencyKey }: EffectRecord): OutcomeAnswer => {
  const answer = provider.find(operation, idempotencyKey)
  return answer !== null && Exit.isSuccess(answer)
    ? { happened: true, result: answer.value }
    : // A declared failure means that nothing happened.
      { happened: false }
}

/** `taken`, or why not. */
const said = ({ workflow, store }: PeopleOptions, { namespace, runId, parked }: RunRecord, what: OutcomeAnswer) =>
  Cairn.answer(workflow, { namespace, runId, step: parked!.step }, what).pipe(
    Effect.retry({
      times: 20,
      schedule: EffectSchedule.spaced("50 millis"),
      while: ({ _tag }) => _tag === "StoreError",
    }),
    Effect.match({
      onSuccess: () => "taken",
      onFailure: (error) => (error._tag === "AnswerRefused" ? error.reason : `${error._tag}: ${error.message}`),
    }),
    Effect.provideService(CheckpointStore, store),
  )

/** People look before they speak: everybody has looked by the time the first one is heard. */
const atOnce = (store: CheckpointStoreService): CheckpointStoreService => ({
  ...store,
  answer: (answer) => Effect.zipRight(Effect.yieldNow(), store.answer(answer)),
})

/** Whether nobody asks any more: a run that is canceled waits for no person. */
const isCanceled = ({ store }: PeopleOptions, { namespace, runId }: RunRecord) =>
  Effect.map(store.findRun(namespace, runId), ({ cancelAt }) => cancelAt !== null)

/** A parked run is answered for, or resumed where a late worker has told by now what came of it. */
export const answerFor = (options: PeopleOptions, run: RunRecord) =>
  Effect.gen(function* () {
    const { store, provider, findings } = options
    const step = run.parked!.step
    const { effects } = yield* store.loadOpen(run.namespace, run.runId, [step])
    const unknown = effects.findLast(({ state }) => state === "intended")
    if (unknown === undefined) {
      const resumed = yield* Effect.provideService(Cairn.resume(run), CheckpointStore, store)
      if (!resumed && !(yield* isCanceled(options, run)))
        findings.add("answer", `the run at '${step}' could not be resumed once its outcome was known`)
      return
    }
    const truth = truthOf(provider, unknown)
    const one = said({ ...options, store: atOnce(store) }, run, truth)
    const both = yield* Effect.all([one, one], { concurrency: 2 })
    if (yield* isCanceled(options, run)) return
    const taken = both.filter((heard) => heard === "taken").length
    // Somebody was first: a late worker has told what came of it.
    if (taken === 0 && both.every((heard) => heard === "AlreadyAnswered")) return
    if (taken !== 1) findings.add("answer", `of two people who answered for '${step}' at once ${taken} were heard`)
    const late = yield* said(options, run, { happened: !truth.happened })
    if (late === "taken") findings.add("answer", `a wrong answer for '${step}' was taken after the right one`)
  })
