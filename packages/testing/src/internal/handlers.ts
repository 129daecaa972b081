/** Handlers as one worker calls them: watched, cut off with their worker, and simulated where the user gives none. */
import {
  handlerTag,
  type CheckpointStoreService,
  type Handler,
  type HandlerContext,
  type MemberOperation,
} from "@cairn/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { Findings } from "./findings.js"
import type { MortalWorker } from "./mortalWorker.js"
import type { Answer, SimulatedProvider } from "./provider.js"
import { sampled } from "./sampled.js"
import type { Tamper } from "./tampering.js"
import type { CommitLog } from "./commitLog.js"
import { templateOf } from "./paths.js"
import type { RunLogs } from "./watchedStore.js"

/** What a handler sees when its connection breaks: neither a declared failure nor `NotPerformed`. */
class ConnectionLost extends Error {
  override readonly name = "ConnectionLost"
}

interface Sent {
  readonly key: string
  readonly fence: number
  readonly at: number
  /** Commits that the store had accepted by then. */
  readonly commits: number
}

/** Everything that was sent in one run, by whichever worker. */
export class Sends {
  private readonly all: Array<Sent> = []

  /** Adds one; true if an earlier owner's send under the key, of which nothing is known, may still be under way. */
  add(log: CommitLog, key: string, fence: number, at: number, timeoutMs: number): boolean {
    const early = this.all.some(
      (sent) =>
        sent.key === key &&
        sent.fence !== fence &&
        at < sent.at + timeoutMs &&
        !log.hasCommittedSince(sent.fence, sent.commits),
    )
    this.all.push({ key, fence, at, commits: log.bySeq.size })
    return early
  }
}

export interface HandlersOptions {
  readonly namespace: string
  readonly logs: RunLogs
  readonly members: ReadonlyArray<MemberOperation>
  /** Whether the store's clock is the worker's: then nobody else can own the run while an operation starts. */
  readonly sameClock: boolean
  readonly store: CheckpointStoreService
  readonly findings: Findings
  readonly sends: Sends
  readonly provider: SimulatedProvider
  /** Whether given handlers talk to the provider themselves. */
  readonly countedByHandlers: boolean
  readonly simulate: Answer | null
  readonly tamper: Tamper
}

/** The run whose intent has a key, as the store has it just now. */
const runOf = ({ logs, namespace, store }: HandlersOptions, key: string) =>
  Effect.gen(function* () {
    const known = logs.ofKey(key)
    for (const [runId, log] of known === null ? logs.byRun : [known]) {
      const { effects } = yield* store.loadOpen(namespace, runId, [...log.paths])
      const intent = effects.find(({ idempotencyKey }) => idempotencyKey === key)
      if (intent !== undefined) return { runId, log, intent }
    }
    return null
  })

/** X4: everything that stands before an operation is durable when it is sent; for one that takes back, that the run fails. */
const inspectPlace = ({ findings }: HandlersOptions, log: CommitLog, path: string): void => {
  const takesBack = log.part.byPath.get(templateOf(path))?.name.endsWith("/compensate") === true
  if (takesBack || log.steps.has(path) || log.walk().open.has(path)) return
  findings.add("barrier", `'${path}' was sent before everything that stands before it was durable`)
}

/** Looks at the store just as an operation starts: its intent must be there, and the run must be this worker's. */
const inspect = (options: HandlersOptions, worker: MortalWorker, member: MemberOperation, context: HandlerContext) =>
  Effect.gen(function* () {
    const operation = member.name
    const { namespace, store, findings } = options
    const found = yield* runOf(options, context.idempotencyKey)
    if (found?.intent.operation !== operation) {
      findings.add("intent", `'${operation}' was sent before an intent of its own under its key was durable`)
    }
    if (found === null) return
    const { intent, log, runId } = found
    inspectPlace(options, log, intent.path)
    const run = yield* store.findRun(namespace, runId)
    const late = worker.hasLost(runId, context.fence) || (options.sameClock && run.fence !== context.fence)
    const now = yield* Clock.currentTimeMillis
    const early = options.sends.add(log, context.idempotencyKey, context.fence, now, member.timeoutMs)
    if (early && options.sameClock) {
      findings.add("early", `'${operation}' was sent again before its first send had surely ended`)
    }
    if (late) findings.add("lease", `'${operation}' was started by a worker that had lost the run`)
  }).pipe(Effect.orDie)

const asEffect = (given: Effect.Effect<unknown, unknown> | Promise<unknown>): Effect.Effect<unknown, unknown> =>
  Effect.isEffect(given) ? given : Effect.tryPromise({ try: () => given, catch: (thrown) => thrown })

const runWith = (options: HandlersOptions, member: MemberOperation, given: Handler | null) => {
  const { provider, simulate, countedByHandlers } = options
  const operation = member.name
  return (payload: unknown, context: HandlerContext): Effect.Effect<unknown, unknown> => {
    const request = { operation, key: context.idempotencyKey, payload }
    if (given === null) {
      const answer: Answer =
        simulate ??
        (({ payload: of }) => sampled(operation, member.codecs.success, `${operation} ${JSON.stringify(of)}`))
      return provider.receive(request, answer)
    }
    const call = Effect.suspend(() => asEffect(given.run(payload, context)))
    return countedByHandlers ? call : provider.count(request, () => call)
  }
}

const checkWith = (options: HandlersOptions, member: MemberOperation, given: Handler | null) => {
  if (given !== null && given.check !== null) return given.check
  return (_payload: unknown, context: HandlerContext): Effect.Effect<unknown> =>
    Effect.sync(() => {
      const answer = options.provider.find(member.name, context.idempotencyKey)
      return answer !== null && Exit.isSuccess(answer) ? { happened: true, result: answer.value } : { happened: false }
    })
}

const wrapped = (
  options: HandlersOptions,
  worker: MortalWorker,
  member: MemberOperation,
  given: Handler | null,
): Handler => {
  const run = runWith(options, member, given)
  const check = checkWith(options, member, given)
  return {
    run: (payload, context) =>
      Effect.gen(function* () {
        yield* worker.underWay
        yield* inspect(options, worker, member, context)
        const lost = worker.losesOperation
        worker.losesOperation = null
        if (lost === "lostRequest") return yield* Effect.fail(new ConnectionLost("it never arrived"))
        const exit = yield* Effect.exit(run(payload, context))
        yield* worker.awake
        if (lost === "lostAnswer") return yield* Effect.fail(new ConnectionLost("the answer never came"))
        return yield* exit
      }),
    check:
      member.onUnknown.policy === "checkFirst"
        ? (payload, context) =>
            Effect.zipRight(
              worker.awake,
              Effect.suspend(() => asEffect(check(payload, context))),
            )
        : null,
  }
}

/** What one worker is given: services as they are, and a handler for every operation. */
export const handlersOf = (
  options: HandlersOptions,
  worker: MortalWorker,
  given: Context.Context<any>,
): Context.Context<any> => {
  let context = given
  for (const member of options.members) {
    const tag = handlerTag(member.name)
    const own = Option.getOrNull(Context.getOption(given, tag))
    context = Context.add(context, tag, options.tamper.handler(wrapped(options, worker, member, own), member))
  }
  return context
}
