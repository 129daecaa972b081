/**
 * The people and programs outside that a run waits for: they send its signals and decide its reviews, before it asks, while it
 * rests, while nobody owns it, or about when its time is over. Each speaks twice at once, of whom one is heard, and once more when
 * nobody listens any more.
 */
import { Cairn, CheckpointStore, codecOf, fingerprint } from "@cairn/core"
import type { CheckpointStoreService, PlanNode, RunRecord } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import * as EffectSchedule from "effect/Schedule"
import type { CommitLog, OpenedWait } from "./commitLog.js"
import type { Findings } from "./findings.js"
import { templateOf } from "./paths.js"
import { sampled } from "./sampled.js"
import type { Part } from "./subject.js"
import type { RunLogs } from "./watchedStore.js"

/**
 * Something that a run waits for from outside.
 *
 * *Shape.* `name` is that of the signal, or of the review's step; `path` the step's in the run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Awaited {
  readonly kind: "signal" | "review"
  readonly workflow: string
  readonly runId: string
  readonly path: string
  readonly name: string
}

/**
 * What comes of it.
 *
 * *Shape.* `yes`: it is sent, or approved. `no`: it is rejected (a signal is not sent). `nothing`: nobody says anything. `late`:
 * it comes about when its time is over, or a moment before or after. `value`: the payload or the decision; one that fits
 * the schema unless given.
 *
 * @category models
 * @since 0.1.0
 */
export interface Saying {
  readonly say: "yes" | "no" | "nothing" | "late"
  readonly value?: unknown
}

export type Says = (of: Awaited) => Saying

export interface CorrespondentsOptions {
  readonly namespace: string
  readonly logs: RunLogs
  readonly store: CheckpointStoreService
  readonly findings: Findings
  readonly says: Says
  /** What delays follow from: the same for the same text. */
  readonly salt: string
}

/** How long it takes until somebody speaks, in milliseconds. */
const delays = [0, 1, 40, 300, 1_500, 4_000] as const
/** How far from the end of the time. */
const nearTheEnd = [-700, -50, -1, 0, 1, 50] as const

interface Sent {
  readonly name: string
  readonly payload: string | null
}

interface Decided {
  readonly by: string
  readonly outcome: string
}

/** Signals of a plan that stand in no turn and no item: they may be sent before anybody asks. */
const earlySignals = ({ nodes }: Part): ReadonlyArray<Extract<PlanNode, { kind: "signal" }>> =>
  nodes.filter(
    (node): node is Extract<PlanNode, { kind: "signal" }> => node.kind === "signal" && !node.path.includes("["),
  )

export class Correspondents {
  private readonly talks = new Set<Fiber.RuntimeFiber<unknown, unknown>>()
  private readonly spoken = new Set<string>()
  private readonly sent = new Map<string, Sent>()
  private readonly decided = new Map<string, Decided>()

  private constructor(
    private readonly options: CorrespondentsOptions,
    private readonly runtime: Runtime.Runtime<never>,
  ) {}

  static readonly make = (options: CorrespondentsOptions): Effect.Effect<Correspondents> =>
    Effect.map(Effect.runtime<never>(), (runtime) => {
      const made = new Correspondents(options, runtime)
      options.logs.happenings = {
        started: (run) => made.started(run),
        waits: (runId, wait) => made.hears(runId, wait),
      }
      return made
    })

  /** A number from 0 that follows from the schedule and a text. */
  private drawn(of: string, below: number): number {
    return Number.parseInt(fingerprint(`${this.options.salt}|${of}`).slice(0, 8), 16) % below
  }

  private talk(talk: Effect.Effect<unknown, unknown>): void {
    const fiber = Runtime.runFork(this.runtime)(talk)
    this.talks.add(fiber)
    fiber.addObserver(() => this.talks.delete(fiber))
  }

  private saying(kind: Awaited["kind"], log: CommitLog, runId: string, path: string, name: string): Saying {
    return this.options.says({ kind, workflow: log.part.workflow.name, runId, path, name })
  }

  private started({ runId }: RunRecord): void {
    const log = this.options.logs.of(runId)!
    for (const { path, signal } of earlySignals(log.part)) {
      if (this.saying("signal", log, runId, path, signal).say !== "yes" || this.drawn(`${runId} ${path}`, 2) === 0)
        continue
      this.talk(this.send(log, runId, path, signal, this.drawn(`${runId} ${path} when`, 3) * 700))
    }
  }

  private hears(runId: string, { kind, name, path, wake }: OpenedWait): void {
    const log = this.options.logs.of(runId)!
    if (kind !== "signal" && kind !== "review") return
    const node = log.part.byPath.get(templateOf(path))
    const called = kind === "signal" ? name! : (node?.name ?? path)
    const { say } = this.saying(kind, log, runId, path, called)
    if (say === "nothing" || (say === "no" && kind === "signal")) return
    const endMs = wake === null || !("inMs" in wake) ? 60_000 : wake.inMs
    const usual = delays[this.drawn(`${runId} ${path}`, delays.length)]!
    const near = nearTheEnd[this.drawn(`${runId} ${path}`, nearTheEnd.length)]!
    const delayMs = say === "late" ? Math.max(0, endMs + near) : Math.min(usual, endMs / 3)
    if (kind === "signal") this.talk(this.send(log, runId, path, called, delayMs))
    else this.talk(this.decide(log, runId, path, name ?? "", called, delayMs))
  }

  private value(log: CommitLog, path: string, given: Saying, text: string): unknown {
    if ("value" in given) return given.value
    const node = log.part.defined.get(templateOf(path))
    const schema = node?.kind === "signal" ? node.schema : node?.kind === "review" ? node.decision : null
    return schema === null ? undefined : sampled(`'${path}'`, codecOf(schema), text)
  }

  /** What may pass is waited out, as anybody would. */
  private asking<A, E extends { readonly _tag: string }>(call: Effect.Effect<A, E, CheckpointStore>) {
    return call.pipe(
      Effect.retry({
        times: 20,
        schedule: EffectSchedule.spaced("50 millis"),
        while: ({ _tag }) => _tag === "StoreError",
      }),
      Effect.map((value): string => (value === false ? "known" : "taken")),
      Effect.catchAll((error) =>
        Effect.succeed("reason" in error ? String((error as { readonly reason: unknown }).reason) : error._tag),
      ),
      Effect.provideService(CheckpointStore, this.options.store),
    )
  }

  /** Whether nobody can be expected to listen. */
  private isOver(runId: string) {
    return Effect.map(
      Effect.orDie(this.options.store.findRun(this.options.namespace, runId)),
      ({ cancelAt, failure, status }) =>
        cancelAt !== null || failure !== null || ["completed", "failed", "canceled"].includes(status),
    )
  }

  private send(log: CommitLog, runId: string, path: string, name: string, delayMs: number) {
    const { findings, namespace } = this.options
    const signalId = `${name}@${path}`
    if (this.spoken.has(`${runId} ${signalId}`)) return Effect.void
    this.spoken.add(`${runId} ${signalId}`)
    const saying = this.saying("signal", log, runId, path, name)
    const say = (payload: unknown) =>
      this.asking(Cairn.signal(log.part.workflow, { runId, namespace, signalId }, name, payload))
    return Effect.gen(this, function* () {
      yield* Effect.sleep(delayMs)
      const payload = this.value(log, path, saying, `${runId} ${path}`)
      const node = log.part.defined.get(templateOf(path))
      const gated = node?.kind === "signal" ? yield* codecOf(node.schema).gate(payload, { place: path }) : null
      // Known before it is sent: whoever takes it at once is not earlier than that.
      this.sent.set(`${runId} ${signalId}`, { name, payload: gated?.text ?? null })
      const both = yield* Effect.all([say(payload), say(payload)], { concurrency: 2 })
      const taken = both.filter((heard) => heard === "taken").length
      if (taken === 0 && (yield* this.isOver(runId))) return
      if (taken !== 1 || !both.includes("known")) {
        findings.add("signal", `signal '${signalId}' was sent twice at once, and heard of as ${both.join(" and ")}`)
      }
      const other = this.value(log, path, {} as Saying, "another one")
      if (JSON.stringify(other) === JSON.stringify(payload)) return
      const again = yield* say(other)
      if (again !== "IdTaken")
        findings.add("signal", `another payload under the id of '${signalId}' was heard of as ${again}`)
    })
  }

  private decide(log: CommitLog, runId: string, path: string, reviewId: string, name: string, delayMs: number) {
    const { findings, namespace } = this.options
    const saying = this.saying("review", log, runId, path, name)
    const { workflow } = log.part
    const say = (by: string, rejects: boolean, value: unknown) =>
      this.asking(
        Cairn.review(
          workflow,
          { runId, namespace, step: path, reviewId },
          rejects ? { by, reject: `said ${by}` } : { by, approve: value },
        ),
      )
    return Effect.gen(this, function* () {
      yield* Effect.sleep(delayMs)
      const rejects = saying.say === "no"
      const [ann, bob] = [this.value(log, path, saying, "ann"), this.value(log, path, saying, "bob")]
      const both = yield* Effect.all([say("ann", rejects, ann), say("bob", rejects, bob)], { concurrency: 2 })
      const heard = both.flatMap((word, index) => (word === "taken" ? [["ann", "bob"][index]!] : []))
      if (heard.length === 1) {
        this.decided.set(`${runId} ${path}`, { by: heard[0]!, outcome: rejects ? "rejected" : "approved" })
      } else if (heard.length > 1) {
        findings.add("review", `of two people who decided on '${path}' at once both were heard`)
      } else if (saying.say !== "late" && !(yield* this.isOver(runId))) {
        findings.add("review", `nobody was heard who decided on '${path}': ${both.join(" and ")}`)
      }
      yield* Effect.sleep(100)
      const late = yield* say("eve", !rejects, ann)
      if (late === "taken") findings.add("review", `a decision on '${path}' was taken after another one, or too late`)
    })
  }

  /** Nobody listens to a run that has ended. */
  readonly tooLate: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(
      this.options.logs.byRun,
      ([runId, log]) => {
        const node = log.part.nodes.find(({ kind }) => kind === "signal")
        if (node?.kind !== "signal") return Effect.void
        const { findings, namespace } = this.options
        const payload = this.value(log, node.path, {} as Saying, "too late")
        const to = { runId, namespace, signalId: "too late" }
        return Effect.map(this.asking(Cairn.signal(log.part.workflow, to, node.signal, payload)), (heard) => {
          if (heard !== "Ended")
            findings.add("signal", `a signal for run '${runId}', which had ended, was heard of as ${heard}`)
        })
      },
      { discard: true },
    ),
  )

  /** Holds what runs went by against what was said to them. */
  judge(): void {
    const { findings, logs } = this.options
    for (const [runId, log] of logs.byRun) {
      const takenBy = new Map([...log.consumed].map(([signalId, path]) => [path, signalId]))
      for (const { effect, path, result } of log.steps.values()) {
        const stored = JSON.parse(result ?? "null") as any
        if (effect === "signal") {
          const signalId = takenBy.get(path)
          const node = log.part.byPath.get(templateOf(path))
          const isOutcome = node?.kind === "signal" && node.onTimeout === "continue"
          if (signalId === undefined) {
            if (!isOutcome || stored?.ok !== false) findings.add("signal", `'${path}' went on without a signal`)
            continue
          }
          const sent = this.sent.get(`${runId} ${signalId}`)
          const took = JSON.stringify(isOutcome ? stored?.value : stored)
          if (sent === undefined || (isOutcome && stored?.ok !== true)) {
            findings.add("signal", `'${path}' took signal '${signalId}', and went on with ${result}`)
          } else if (took !== undefined && took !== JSON.stringify(JSON.parse(sent.payload ?? "null"))) {
            findings.add("signal", `'${path}' took signal '${signalId}' of ${sent.payload}, and went on with ${took}`)
          }
        } else if (effect === "review") {
          const said = this.decided.get(`${runId} ${path}`)
          const { by = null, outcome } = stored as { readonly by?: string; readonly outcome: string }
          const isAsSaid = outcome === "expired" ? said === undefined : said?.by === by && said?.outcome === outcome
          if (!isAsSaid) {
            const heard = said === undefined ? "nobody was heard" : `${said.by} ${said.outcome} it`
            findings.add("review", `'${path}' went on as ${outcome} by ${by}, and ${heard}`)
          }
        }
      }
    }
  }

  /** Nobody says anything more. */
  readonly end: Effect.Effect<void> = Effect.suspend(() => Effect.asVoid(Fiber.interruptAll([...this.talks])))
}

/** What is said unless somebody says otherwise. */
export const agreeing: Says = () => ({ say: "yes" })
