import { entrypoint, task, START, END, StateGraph, Annotation } from "@langchain/langgraph"
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint"
import { poolSize, type DurabilityClass, type Opened, type Place, type Shape, type Subject } from "../Subject.js"

interface Saver {
  readonly saver: BaseCheckpointSaver
  readonly settings: () => Promise<Record<string, string>>
  readonly close: () => unknown
}

const sqlite =
  (full: boolean) =>
  async ({ file }: Place): Promise<Saver> => {
    const { default: Database } = await import("better-sqlite3")
    const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite")
    const db = new Database(file)
    const saver = new SqliteSaver(db)
    // It has no such option, but takes a connection of ours.
    if (full) db.pragma("synchronous = full")
    return {
      saver,
      settings: async () => ({
        synchronous: String(db.pragma("synchronous", { simple: true })),
        journal_mode: String(db.pragma("journal_mode", { simple: true })),
      }),
      close: () => {
        db.pragma("wal_checkpoint(truncate)")
        db.close()
      },
    }
  }

const postgres = async ({ url }: Place): Promise<Saver> => {
  const { default: pg } = await import("pg")
  const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres")
  const pool = new pg.Pool({ connectionString: url, max: poolSize })
  const saver = new PostgresSaver(pool)
  await saver.setup()
  return {
    saver,
    settings: async () => {
      const { rows } = await pool.query(
        "select current_setting('synchronous_commit') as c, current_setting('fsync') as f",
      )
      return { synchronous_commit: rows[0].c, fsync: rows[0].f, pool: String(poolSize) }
    },
    close: () => saver.end(),
  }
}

type Invoke = (input: unknown, config: Record<string, unknown>) => Promise<unknown>

/** One node that comes round again: a graph of a thousand nodes would carry a thousand names in each checkpoint. */
const graph = (saver: BaseCheckpointSaver, { body, steps }: Shape): Invoke => {
  const State = Annotation.Root({ next: Annotation<number>(), last: Annotation<string>() })
  const compiled = new StateGraph(State)
    .addNode("step", async ({ next }) => ({ last: await body(next), next: next + 1 }))
    .addEdge(START, "step")
    .addConditionalEdges("step", ({ next }) => (next < steps ? "step" : END))
    .compile({ checkpointer: saver })
  return (input, config) => compiled.invoke(input === null ? null : { next: 0, last: "" }, config as never)
}

const functional = (saver: BaseCheckpointSaver, { body, name, steps }: Shape): Invoke => {
  const step = task("step", async (index: number) => body(index))
  const main = entrypoint({ name, checkpointer: saver }, async (_: string) => {
    for (let index = 0; index < steps; index++) await step(index)
    return "done"
  })
  return (input, config) => main.invoke(input === null ? (null as never) : "go", config as never)
}

const open =
  (openSaver: (place: Place) => Promise<Saver>, api: typeof graph, durability: "sync" | "async") =>
  async (place: Place, shapes: ReadonlyArray<Shape>): Promise<Opened> => {
    const { close, saver, settings } = await openSaver(place)
    const workflows = new Map(shapes.map((shape) => [shape.name, { ...shape, invoke: api(saver, shape) }]))
    const config = (workflow: string, runId: string) => ({
      configurable: { thread_id: runId },
      recursionLimit: workflows.get(workflow)!.steps + 10,
      durability,
    })
    return {
      run: async (workflow, runId) => void (await workflows.get(workflow)!.invoke("go", config(workflow, runId))),
      goOn: async (workflow, runId) => void (await workflows.get(workflow)!.invoke(null, config(workflow, runId))),
      settings: async () => ({ durability, ...(await settings()) }),
      close: async () => void (await close()),
    }
  }

const savers = { "sqlite full": sqlite(true), "sqlite normal": sqlite(false), postgres }
const packages = {
  "sqlite full": ["@langchain/langgraph", "@langchain/langgraph-checkpoint-sqlite", "better-sqlite3"],
  "sqlite normal": ["@langchain/langgraph", "@langchain/langgraph-checkpoint-sqlite", "better-sqlite3"],
  postgres: ["@langchain/langgraph", "@langchain/langgraph-checkpoint-postgres", "pg"],
}

const subject = (of: keyof typeof savers, api: "graph" | "functional", durability: "sync" | "async"): Subject => ({
  name: `LangGraph ${api}, ${of}, ${durability}`,
  engine: "langgraph",
  class: of as DurabilityClass,
  // A task of the functional API is never waited for: its result is written while the next one runs.
  mode: durability === "sync" && api === "graph" ? "step" : "behind",
  packages: packages[of],
  ...(durability === "sync" &&
    api === "graph" && {
      note: "There are no leases, no worker and no claim: the caller runs the graph. The steps are one node that comes round again, the best case for the size of its checkpoints.",
    }),
  ...(durability === "async" && {
    note: "`async` is its default: the next step begins while the checkpoint is written.",
  }),
  leaseMs: 0,
  fanRuns: 200,
  open: open(savers[of], api === "graph" ? graph : functional, durability),
})

export const subjects: ReadonlyArray<Subject> = [
  subject("sqlite full", "graph", "sync"),
  subject("sqlite normal", "graph", "sync"),
  subject("sqlite normal", "functional", "sync"),
  subject("postgres", "graph", "sync"),
  subject("postgres", "graph", "async"),
  subject("postgres", "functional", "sync"),
]
