/** A fleet of worker processes over one store, and what is done to them. */
import { Cairn, CheckpointStore, type RunState, type WorkerOptions } from "@cairn/core"
import { Effect, Layer } from "effect"
import { spawn, type ChildProcess } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { storeAt } from "./store.js"
import { expectedOutput, order, runIdOf, type Sent } from "./workflow.js"

/** What a worker process is told. */
export interface Orders extends Pick<WorkerOptions<any>, "durability" | "local" | "maxPendingBytes"> {
  /** A file name, or a `postgres://` address. */
  readonly store: string
  readonly log: string
  readonly leaseMs: number
  readonly concurrency: number
  /** Each write of what was accepted waits for up to so long. */
  readonly flushMs?: number
}

export interface FleetOptions extends Omit<Orders, "concurrency"> {
  readonly workers: number
  readonly runs: number
  /** Runs at once in each worker; unless given, together they can hold all. */
  readonly concurrency?: number
  /** The number of the first order; 0 unless given. */
  readonly first?: number
  /** Where workers write down what they did. */
  readonly trace?: string
  /** Length of two of a run's outputs; 1 unless given. */
  readonly outputChars?: number
}

const script = fileURLToPath(new URL("./worker.ts", import.meta.url))

export class Fleet {
  private readonly workers: Array<ChildProcess> = []
  /** Workers that are past their start. */
  private readonly up = new Set<ChildProcess>()
  /** What workers have written to their standard error: nothing, if all is well. */
  readonly complaints: Array<string> = []

  constructor(readonly options: FleetOptions) {}

  start(): void {
    for (let index = 0; index < this.options.workers; index++) this.workers[index] = this.spawn()
  }

  private spawn(): ChildProcess {
    const { first: _first, outputChars = 1, runs, trace = "", workers, ...orders } = this.options
    // Together they can hold all runs: a run that a dead worker held is taken over at once, not behind a queue.
    const { concurrency = Math.ceil((2 * runs) / workers) } = this.options
    const child = spawn(process.execPath, ["--conditions=@cairn/source", "--import", "tsx", script], {
      env: {
        ...process.env,
        CHAOS_ORDERS: JSON.stringify({ ...orders, concurrency } satisfies Orders),
        CHAOS_OUTPUT_CHARS: String(outputChars),
        CHAOS_TRACE: trace,
      },
      stdio: ["ignore", "pipe", "pipe"],
    })
    child.stdout!.on("data", () => this.up.add(child))
    child.stderr!.on("data", (chunk: Buffer) => this.complaints.push(chunk.toString()))
    return child
  }

  private pick(): number {
    return Math.floor(Math.random() * this.workers.length)
  }

  /** Kills one worker as a machine that loses power would, and starts another in its place. */
  killOne(): void {
    this.killAt(this.pick())
  }

  /** The same to one that is past its start. False if there is none. */
  killWorking(): boolean {
    const working = [...this.workers.keys()].filter((index) => this.up.has(this.workers[index]!))
    if (working.length === 0) return false
    this.killAt(working[Math.floor(Math.random() * working.length)]!)
    return true
  }

  private killAt(index: number): void {
    this.workers[index]!.kill("SIGKILL")
    this.workers[index] = this.spawn()
  }

  /** Stops one worker for longer than its lease, then lets it go on. */
  stallOne(ms: number): void {
    const worker = this.workers[this.pick()]!
    worker.kill("SIGSTOP")
    setTimeout(() => worker.kill("SIGCONT"), ms)
  }

  /** What each worker holds in memory; none of one that has ended. Linux only. */
  rssMb(): ReadonlyArray<number> {
    return this.workers.flatMap(({ exitCode, pid, signalCode }) => {
      if (exitCode !== null || signalCode !== null) return []
      const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
      return kilobytes === undefined ? [] : [Math.round(Number(kilobytes) / 1_024)]
    })
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

  private orders(): ReadonlyArray<number> {
    const { first = 0, runs } = this.options
    return Array.from({ length: runs }, (_, index) => first + index)
  }

  startRuns(): Promise<void> {
    return this.within(
      Effect.forEach(this.orders(), (number) => Cairn.start(order, { order: number }, { runId: runIdOf(number) }), {
        concurrency: 8,
        discard: true,
      }),
    )
  }

  /** Waits until every run is final or parked, and returns them all. */
  settled(timeoutMs: number): Promise<ReadonlyArray<RunState>> {
    const runIds = this.orders().map(runIdOf)
    return this.within(
      Effect.gen(function* () {
        const store = yield* CheckpointStore
        const open = new Set(runIds)
        const end = Date.now() + timeoutMs
        while (open.size > 0 && Date.now() < end) {
          for (const runId of open) {
            const run = yield* Effect.retry(store.findRun("default", runId), { times: 20 })
            if (["completed", "failed", "canceled", "review"].includes(run.status)) open.delete(runId)
            else break
          }
          yield* Effect.sleep("100 millis")
        }
        return yield* Effect.forEach(runIds, (runId) => store.load("default", runId))
      }),
    )
  }

  /** How many runs have come to an end. */
  ended(): Promise<number> {
    const { runs: limit } = this.options
    const final = { namespace: "default", statuses: ["completed", "failed", "canceled"] as const, limit }
    const any = { workflow: null, parentRunId: null, createdFrom: null, createdBefore: null, after: null }
    return this.within(
      Effect.flatMap(CheckpointStore, (store) =>
        Effect.map(Effect.retry(store.listRuns({ ...final, ...any }), { times: 20 }), ({ length }) => length),
      ),
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
  /** Runs in which a step's `seq` does not follow that of the step before, or of its own intent. */
  readonly gaps: ReadonlyArray<string>
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

/**
 * A local step is one commit, and an operation two at least. Who takes a run over may look at its intent again, or hand the
 * run back: those are commits, too.
 */
const hasGap = ({ run, steps }: RunState): boolean => {
  const wasTakenOver = run.fence > 1
  const misplaced = steps.some(({ path, seq }, index) => {
    const since = seq - (index === 0 ? 0 : steps[index - 1]!.seq)
    const least = path.startsWith("s") ? 1 : 2
    return wasTakenOver ? since < least : since !== least
  })
  return misplaced || (run.status === "completed" && run.seq !== steps.at(-1)?.seq)
}

const numberOf = ({ run }: RunState): number => Number(run.runId.slice(runIdOf(0).length - 1))

export const judge = (states: ReadonlyArray<RunState>, sent: ReadonlyArray<Sent>): Verdict => {
  const keysOf = new Map<string, Set<string>>()
  const payloadsOf = new Map<string, Set<string>>()
  for (const { operation, key, payload } of sent) {
    const effect = `${operation} of order ${payload.order}`
    keysOf.set(effect, (keysOf.get(effect) ?? new Set()).add(key))
    payloadsOf.set(key, (payloadsOf.get(key) ?? new Set()).add(JSON.stringify(payload)))
  }
  const effects = states.flatMap((state) => [
    `payments.charge of order ${numberOf(state)}`,
    `mail.send of order ${numberOf(state)}`,
  ])
  return {
    completed: states.filter(({ run }) => run.status === "completed").length,
    others: states
      .filter(({ run }) => run.status !== "completed")
      .map(({ run }) => `${run.runId}: ${run.status} ${run.parked?.problem ?? run.failure?.problem ?? ""}`),
    wrongSteps: states
      .filter(({ steps }) => JSON.stringify(steps.map(({ path }) => path)) !== JSON.stringify(paths))
      .map(({ run }) => run.runId),
    gaps: states.filter(hasGap).map(({ run }) => run.runId),
    wrongOutputs: states
      .filter(
        (state) =>
          JSON.stringify(JSON.parse(state.run.output ?? "null")) !== JSON.stringify(expectedOutput(numberOf(state))),
      )
      .map(({ run }) => run.runId),
    wrongKeys: effects.filter((effect) => keysOf.get(effect)?.size !== 1),
    wrongPayloads: [...payloadsOf].filter(([, payloads]) => payloads.size !== 1).map(([key]) => key),
    sent: sent.length,
    resent: sent.length - payloadsOf.size,
    takeovers: states.reduce((sum, { run }) => sum + run.fence - 1, 0),
  }
}
