/** A fleet of worker processes over one store, and what is done to them. */
import { Cairn, CheckpointStore, type RunState } from "@cairn/core"
import { Effect, Layer } from "effect"
import { spawn, type ChildProcess } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { storeAt } from "./store.js"
import { expectedOutput, order, type Sent } from "./workflow.js"

export interface FleetOptions {
  /** A file name, or a `postgres://` address. */
  readonly store: string
  readonly log: string
  readonly workers: number
  readonly runs: number
  readonly leaseMs: number
}

const script = fileURLToPath(new URL("./worker.ts", import.meta.url))

export class Fleet {
  private readonly workers: Array<ChildProcess> = []
  /** What workers have written to their standard error: nothing, if all is well. */
  readonly complaints: Array<string> = []

  constructor(readonly options: FleetOptions) {}

  start(): void {
    for (let index = 0; index < this.options.workers; index++) this.workers[index] = this.spawn()
  }

  private spawn(): ChildProcess {
    const { store, log, leaseMs, runs, workers } = this.options
    // Together they can hold all runs: a run that a dead worker held is taken over at once, not behind a queue.
    const concurrency = Math.ceil((2 * runs) / workers)
    const child = spawn(process.execPath, ["--conditions=@cairn/source", "--import", "tsx", script], {
      env: {
        ...process.env,
        CHAOS_STORE: store,
        CHAOS_LOG: log,
        CHAOS_LEASE_MS: String(leaseMs),
        CHAOS_CONCURRENCY: String(concurrency),
      },
      stdio: ["ignore", "ignore", "pipe"],
    })
    child.stderr!.on("data", (chunk: Buffer) => this.complaints.push(chunk.toString()))
    return child
  }

  private pick(): number {
    return Math.floor(Math.random() * this.workers.length)
  }

  /** Kills one worker as a machine that loses power would, and starts another in its place. */
  killOne(): void {
    const index = this.pick()
    this.workers[index]!.kill("SIGKILL")
    this.workers[index] = this.spawn()
  }

  /** Stops one worker for longer than its lease, then lets it go on. */
  stallOne(ms: number): void {
    const worker = this.workers[this.pick()]!
    worker.kill("SIGSTOP")
    setTimeout(() => worker.kill("SIGCONT"), ms)
  }

  async end(): Promise<void> {
    await Promise.all(
      this.workers.map(
        (worker) =>
          new Promise<void>((resolve) => {
            if (worker.exitCode !== null || worker.signalCode !== null) return resolve()
            worker.once("close", () => resolve())
            worker.kill("SIGCONT")
            worker.kill("SIGTERM")
            setTimeout(() => worker.kill("SIGKILL"), 5_000).unref()
          }),
      ),
    )
  }

  private within<A, E>(effect: Effect.Effect<A, E, CheckpointStore>): Promise<A> {
    return Effect.runPromise(Effect.provide(effect, Layer.fresh(storeAt(this.options.store))))
  }

  startRuns(): Promise<void> {
    return this.within(
      Effect.forEach(
        Array.from({ length: this.options.runs }, (_, index) => index),
        (index) => Cairn.start(order, { order: index }, { runId: `order-${index}` }),
        { concurrency: 8, discard: true },
      ),
    )
  }

  /** Waits until every run is final or parked, and returns them all. */
  settled(timeoutMs: number): Promise<ReadonlyArray<RunState>> {
    const { runs } = this.options
    return this.within(
      Effect.gen(function* () {
        const store = yield* CheckpointStore
        const open = new Set(Array.from({ length: runs }, (_, index) => `order-${index}`))
        const end = Date.now() + timeoutMs
        while (open.size > 0 && Date.now() < end) {
          for (const runId of open) {
            const run = yield* Effect.retry(store.findRun("default", runId), { times: 20 })
            if (["completed", "failed", "canceled", "review"].includes(run.status)) open.delete(runId)
            else break
          }
          yield* Effect.sleep("100 millis")
        }
        return yield* Effect.forEach(
          Array.from({ length: runs }, (_, index) => `order-${index}`),
          (runId) => store.load("default", runId),
        )
      }),
    )
  }

  sent(): ReadonlyArray<Sent> {
    if (!existsSync(this.options.log)) return []
    return readFileSync(this.options.log, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Sent)
  }
}

/** What must hold whatever was done to the fleet. */
export interface Verdict {
  readonly completed: number
  /** Runs in any other state, with that state. */
  readonly others: ReadonlyArray<string>
  /** Runs whose steps are not exactly the ten, once each, in order. */
  readonly wrongSteps: ReadonlyArray<string>
  readonly wrongOutputs: ReadonlyArray<string>
  /** Operations that the outside world never saw, or saw under several keys. */
  readonly wrongKeys: ReadonlyArray<string>
  /** Keys that came with different payloads. */
  readonly wrongPayloads: ReadonlyArray<string>
  readonly sent: number
  /** Sent again, under the same key and with the same payload: the provider's memory answers these. */
  readonly resent: number
  /** Takeovers that the runs have seen, added up. */
  readonly takeovers: number
}

const paths = ["s1", "s2", "s3", "charge", "s5", "s6", "mail", "s8", "s9", "s10"]

export const judge = (states: ReadonlyArray<RunState>, sent: ReadonlyArray<Sent>): Verdict => {
  const keysOf = new Map<string, Set<string>>()
  const payloadsOf = new Map<string, Set<string>>()
  for (const { operation, key, payload } of sent) {
    const effect = `${operation} of order ${payload.order}`
    keysOf.set(effect, (keysOf.get(effect) ?? new Set()).add(key))
    payloadsOf.set(key, (payloadsOf.get(key) ?? new Set()).add(JSON.stringify(payload)))
  }
  const effects = states.flatMap((_, index) => [`payments.charge of order ${index}`, `mail.send of order ${index}`])
  return {
    completed: states.filter(({ run }) => run.status === "completed").length,
    others: states
      .filter(({ run }) => run.status !== "completed")
      .map(({ run }) => `${run.runId}: ${run.status} ${run.parked?.problem ?? run.failure?.problem ?? ""}`),
    wrongSteps: states
      .filter(({ steps }) => JSON.stringify(steps.map(({ path }) => path)) !== JSON.stringify(paths))
      .map(({ run }) => run.runId),
    wrongOutputs: states
      .filter(
        ({ run }, index) => JSON.stringify(JSON.parse(run.output ?? "null")) !== JSON.stringify(expectedOutput(index)),
      )
      .map(({ run }) => run.runId),
    wrongKeys: effects.filter((effect) => keysOf.get(effect)?.size !== 1),
    wrongPayloads: [...payloadsOf].filter(([, payloads]) => payloads.size !== 1).map(([key]) => key),
    sent: sent.length,
    resent: sent.length - payloadsOf.size,
    takeovers: states.reduce((sum, { run }) => sum + run.fence - 1, 0),
  }
}
