/** What is measured: an engine with a store and its settings, behind one interface. One file an engine. */

/** Where a subject keeps its data. Made empty by the driver for each child process, or left from an earlier one. */
export interface Place {
  /** A SQLite file that may not exist yet. */
  readonly file: string
  /** A Postgres database of its own, empty at first. */
  readonly url: string
}

/** A workflow of steps in a row. */
export interface Shape {
  readonly name: string
  readonly steps: number
  /** Which of the steps are operations: what they do is not to be done twice. None unless given. */
  readonly operations?: ReadonlyArray<number>
  /** The step's whole work; called on the step's first line. Never settles where the process is to be killed. */
  readonly body: (index: number) => string | Promise<string>
}

/** Which promises a finished step has kept; only subjects of one class are compared. */
export type DurabilityClass = "memory" | "sqlite full" | "sqlite normal" | "postgres"

export interface Opened {
  /** Starts a run and resolves once its end is durable and known to the client. */
  readonly run: (workflow: string, runId: string) => Promise<void>
  /** Starts all at once and resolves once the last end is durable. By default, `run` for each. */
  readonly runAll?: (workflow: string, runIds: ReadonlyArray<string>) => Promise<void>
  /** Goes on with a run whose process died; called in the new process. By default, `run`. */
  readonly goOn?: (workflow: string, runId: string) => Promise<void>
  /** What is in force, read back where that is possible. */
  readonly settings: () => Promise<Readonly<Record<string, string>>>
  readonly close: () => Promise<void>
}

export interface Subject {
  readonly name: string
  /** What `--only` names. */
  readonly engine: string
  readonly class: DurabilityClass
  /** `step`: a step's record is durable before the next step begins. `behind`: the engine may run ahead of the store. */
  readonly mode: "step" | "behind"
  /** Npm packages whose versions belong beside the figures. */
  readonly packages: ReadonlyArray<string>
  /** Said in the report: what a reader has to know to judge the figures. */
  readonly note?: string
  /** How long the claim of a killed process stands, in milliseconds: a resume is measured after that. */
  readonly leaseMs: number
  /** The most committed steps that a resume is tried with. */
  readonly maxResumeSteps?: number
  /** Fewer runs at once than the others', where those would take minutes. */
  readonly fanRuns?: number
  readonly open: (place: Place, shapes: ReadonlyArray<Shape>) => Promise<Opened>
}

/** Runs of an engine that has a worker are executed so many at once, in every engine that lets one choose. */
export const concurrency = 64

/** Connections of a pool, in every engine that lets one choose. */
export const poolSize = 20
