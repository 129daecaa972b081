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
import type { CommitLog } from "./watchedStore.js"

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

  constructor(private readonly log: CommitLog) {}

  /** Adds one; true if an earlier owner's send under the key, of which nothing is known, may still be under way. */
  add(key: string, fence: number, at: number, timeoutMs: number): boolean {
    const early = this.all.some(
      (sent) =>
        sent.key === key &&
        sent.fence !== fence &&
        at < sent.at + timeoutMs &&
        !this.log.hasCommittedSince(sent.fence, sent.commits),
    )
    this.all.push({ key, fence, at, commits: this.log.bySeq.size })
    return early
  }
}

export interface HandlersOptions {
  readonly namespace: string
  readonly runId: string
  readonly paths: ReadonlyArray<string>
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

/** Looks at the store just as an operation starts: its intent must be there, and the run must be this worker's. */
const inspect = (options: HandlersOptions, worker: MortalWorker, member: MemberOperation, context: HandlerContext) =>
  Effect.gen(function* () {
    const operation = member.name
    const { namespace, runId, paths, store, findings } = options
    const open = yield* store.loadOpen(namespace, runId, paths)
    const intent = open.effects.find(({ idempotencyKey }) => idempotencyKey === context.idempotencyKey)
    if (intent?.operation !== operation) {
      findings.add("intent", `'${operation}' was sent before an intent of its own under its key was durable`)
    }
    const run = yield* store.findRun(namespace, runId)
    const late = worker.refusedFence >= context.fence || (options.sameClock && run.fence !== context.fence)
    const now = yield* Clock.currentTimeMillis
    const early = options.sends.add(context.idempotencyKey, context.fence, now, member.timeoutMs)
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
        yield* worker.awake
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
