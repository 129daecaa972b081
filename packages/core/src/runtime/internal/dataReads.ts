/**
 * What a step reads of data that has versions: the value goes to its function, the note of it into the step's commit.
 *
 * - X3: what the key stands for is asked by the key as it is stored, now as on a resume.
 * - What stands in the store's database is read in the step's own transaction, or, where it has none, in one that is rolled back
 *   whatever is done in it: a look writes nothing.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { capturedRows, type AnyDataVersion, type Captured, type Json } from "../../dsl/DataVersion.js"
import { dataNeedsTransactions, dataReadOutside, undeclaredData } from "../../model/DiagnosticCode.js"
import { InvalidValue, StepMisuse, StepTimeout } from "../../model/Errors.js"
import { toJsonText } from "../../model/internal/json.js"
import { isInstance } from "../../model/internal/untrusted.js"
import type { TransactionAccess } from "../../store/CheckpointDriver.js"
import { effectOf, tried } from "./asynchrony.js"
import type { DataRead } from "./dataNotes.js"
import type { Attempt } from "./decide.js"
import { stopWith, type OperationState } from "./operationState.js"
import { persisting, type RunEnv, type RunSession } from "./session.js"
import { maxTransactionMs } from "./transactionLimits.js"

/** A capture, with what the database calls the state that it saw. */
export interface Seen extends Captured<unknown> {
  readonly snapshot: string | null
}

/** Long enough for a query that a step waits for, where its lease allows it. */
const longestLookMs = 10_000

/** What a look has found: it ends its transaction like a failure, so that nothing is kept of it. */
class Found<A> {
  readonly _tag = "Found"
  constructor(readonly value: A) {}
}

/** Looks into the store's database. Errors of the look, of the store, and `StepTimeout`. */
const look = <A, E>(
  env: RunEnv,
  step: string,
  data: string,
  use: (access: TransactionAccess) => Effect.Effect<A, E, any>,
): Effect.Effect<A, unknown, any> => {
  const { transact } = env.store
  if (transact === undefined) {
    // A worker refuses such a workflow when it starts.
    const problem = dataNeedsTransactions(step, data, env.store.capabilities.name)
    return Effect.fail(new StepMisuse({ step, code: "CRN106", problem }))
  }
  const timeoutMs = Math.min(longestLookMs, maxTransactionMs(env.leaseMs))
  const body = (access: TransactionAccess) =>
    use(access).pipe(
      Effect.timeoutFail({ duration: timeoutMs, onTimeout: () => new StepTimeout({ step, timeoutMs }) }),
      Effect.flatMap((value) => Effect.fail(new Found(value))),
    ) as Effect.Effect<never, unknown>
  return Effect.matchEffect(persisting(env, transact<never, unknown>({ timeoutMs }, body)), {
    onFailure: (error) => (isInstance(error, Found) ? Effect.succeed(error.value as A) : Effect.fail(error)),
    onSuccess: ({ value }) => Effect.succeed(value),
  })
}

type StoreSource = Extract<AnyDataVersion["source"], { readonly place: "store" }>

const rowsIn = (source: StoreSource, key: Json, access: TransactionAccess): Effect.Effect<Seen, unknown, any> =>
  Effect.gen(function* () {
    const snapshot = access.snapshot === undefined ? null : yield* access.snapshot
    const asked = yield* tried(() => source.rows(key))
    const rows: Effect.Effect<ReadonlyArray<unknown>, unknown, any> = Effect.isEffect(asked)
      ? asked
      : access.query(asked.text, asked.parameters ?? [])
    const found = yield* Effect.provide(Effect.scoped(rows), access.services)
    return { ...capturedRows(source, found), snapshot }
  })

/** Data as it is now. What it needs comes from the worker, beside what is there already. */
export const capture = (
  env: RunEnv,
  step: string,
  { name, source }: AnyDataVersion,
  key: Json,
  access: TransactionAccess | null,
): Effect.Effect<Seen, unknown> => {
  const captured: Effect.Effect<Seen, unknown, any> =
    source.place === "store"
      ? access === null
        ? look(env, step, name, (lent) => rowsIn(source, key, lent))
        : rowsIn(source, key, access)
      : Effect.map(Effect.scoped(effectOf(() => source.capture(key))), ({ token, value }): Seen => ({
          value,
          token,
          snapshot: null,
        }))
  return Effect.mapInputContext(captured, (context: Context.Context<never>) => Context.merge(env.context, context))
}

/** A value as the JSON that is stored of it. */
const asJson = (value: unknown, place: string, most: number): Effect.Effect<Json, InvalidValue> => {
  const written = toJsonText(value)
  if (!("text" in written)) return Effect.fail(new InvalidValue({ place, ...written }))
  const { text } = written
  if (text !== null && text.length <= most) return Effect.succeed(JSON.parse(text) as Json)
  const why =
    text === null
      ? ({ reason: "NotJson", problem: "undefined has no JSON form" } as const)
      : ({ reason: "TooLarge", problem: `it takes ${text.length} characters and at most ${most} are allowed` } as const)
  return Effect.fail(new InvalidValue({ place, field: "", ...why }))
}

/** What `Data.read(key)` does in an attempt. */
export const readIn =
  (session: RunSession, attempt: Attempt, state: OperationState, access: TransactionAccess | null) =>
  (version: AnyDataVersion, given: unknown): Effect.Effect<unknown, unknown> =>
    Effect.suspend(() => {
      const step = attempt.node.name
      const { name } = version
      if (state.closed) return Effect.die(new StepMisuse({ step, code: "CRN109", problem: dataReadOutside(name) }))
      const node = session.node(attempt.path)
      if (node.kind !== "step" || !node.effects.includes(version)) {
        const error = new StepMisuse({ step, code: "CRN102", problem: undeclaredData(step, name) })
        return stopWith(state, { _tag: "Misuse", error })
      }
      const refused = (error: InvalidValue) => stopWith(state, { _tag: "Refused", error })
      return Effect.gen(function* () {
        const most = session.env.maxValueLength
        const place = `of data '${name}' in step '${step}'`
        const key = yield* Effect.catchAll(asJson(given, `key ${place}`, most), refused)
        const seen = yield* capture(session.env, step, version, key, access)
        const token = yield* Effect.catchAll(asJson(seen.token, `token ${place}`, most), refused)
        state.reads.push({ name, key, token, snapshot: seen.snapshot } satisfies DataRead)
        return seen.value
      })
    })
