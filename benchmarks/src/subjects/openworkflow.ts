import { OpenWorkflow } from "openworkflow"
import type { BackendPostgres } from "openworkflow/postgres"
import { concurrency, type Opened, type Place, type Shape, type Subject } from "../Subject.js"

const pollMs = 10
const pause = () => new Promise((resolve) => setTimeout(resolve, pollMs))

type Backend = BackendPostgres
type OpenBackend = (place: Place) => Promise<Backend>

const open =
  (openBackend: OpenBackend, settings: (backend: Backend) => Record<string, string>) =>
  async (place: Place, shapes: ReadonlyArray<Shape>): Promise<Opened> => {
    const backend = await openBackend(place)
    const ow = new OpenWorkflow({ backend })
    const workflows = new Map(
      shapes.map(({ body, name, steps }) => [
        name,
        ow.defineWorkflow({ name }, async ({ step }) => {
          for (let index = 0; index < steps; index++) await step.run({ name: `s${index}` }, async () => body(index))
          return null
        }),
      ]),
    )
    const worker = ow.newWorker({ concurrency })
    await worker.start()
    const start = async (workflow: string, runId: string): Promise<string> => {
      const handle = await workflows.get(workflow)!.run(undefined, { idempotencyKey: runId })
      return handle.workflowRun.id
    }
    // Its own `result()` looks once a second: the run would be measured in seconds.
    const ended = async (workflowRunId: string): Promise<void> => {
      for (;;) {
        const run = await backend.getWorkflowRun({ workflowRunId })
        if (run?.status === "completed") return
        if (run?.status === "failed") throw new Error(JSON.stringify(run.error))
        await pause()
      }
    }
    return {
      run: async (workflow, runId) => ended(await start(workflow, runId)),
      runAll: async (workflow, runIds) => {
        const before = (await backend.countWorkflowRuns()).completed
        await Promise.all(runIds.map((runId) => start(workflow, runId)))
        while ((await backend.countWorkflowRuns()).completed < before + runIds.length) await pause()
      },
      goOn: async () => new Promise(() => {}),
      settings: async () => ({ concurrency: String(concurrency), ...settings(backend) }),
      close: async () => {
        await worker.stop()
        await backend.stop()
      },
    }
  }

const note =
  "Its client looks for a result once a second; here it looks every 10 ms. Its worker, when idle, looks for runs every 0.1 to 1 s, which is in the run's time and not in the step's. It refuses a run of more than 1,000 steps."

const postgres: Subject = {
  name: "OpenWorkflow, postgres",
  engine: "openworkflow",
  class: "postgres",
  mode: "step",
  packages: ["openworkflow", "postgres"],
  note,
  leaseMs: 30_000,
  maxResumeSteps: 900,
  open: open(
    async ({ url }) => (await import("openworkflow/postgres")).BackendPostgres.connect(url),
    () => ({ pool: "10 (its own, not to be set through `connect`)" }),
  ),
}

const sqlite: Subject = {
  ...postgres,
  name: "OpenWorkflow, sqlite as it comes",
  class: "sqlite full",
  packages: ["openworkflow"],
  open: open(
    async ({ file }) => (await import("openworkflow/sqlite")).BackendSqlite.connect(file) as never,
    (backend) => {
      const { db } = backend as unknown as { db: { prepare: (sql: string) => { get: () => Record<string, unknown> } } }
      return {
        synchronous: String(db.prepare("pragma synchronous").get()["synchronous"]),
        journal_mode: String(db.prepare("pragma journal_mode").get()["journal_mode"]),
      }
    },
  ),
}

// Its SQLite backend is made of `node:sqlite`.
const hasNodeSqlite = process.getBuiltinModule?.("node:sqlite") !== undefined

export const subjects: ReadonlyArray<Subject> = hasNodeSqlite ? [postgres, sqlite] : [postgres]
