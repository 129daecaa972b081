import * as ClusterWorkflowEngine from "@effect/cluster/ClusterWorkflowEngine"
import * as SingleRunner from "@effect/cluster/SingleRunner"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Activity from "@effect/workflow/Activity"
import * as Workflow from "@effect/workflow/Workflow"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { poolSize, type DurabilityClass, type Opened, type Place, type Shape, type Subject } from "../Subject.js"

const leaseMs = 5_000

const workflowOf = ({ body, name, steps }: Shape) => {
  const workflow = Workflow.make({ name, payload: { id: Schema.String }, idempotencyKey: ({ id }) => id })
  const layer = workflow.toLayer(() =>
    Effect.gen(function* () {
      for (let index = 0; index < steps; index++) {
        yield* Activity.make({
          name: `s${index}`,
          success: Schema.String,
          execute: Effect.suspend(() => {
            const result = body(index)
            return typeof result === "string" ? Effect.succeed(result) : Effect.promise(() => result)
          }),
        })
      }
    }),
  )
  return { workflow, layer }
}

type Database = (place: Place) => Promise<Layer.Layer<SqlClient.SqlClient, unknown>>

const sqlite =
  (full: boolean): Database =>
  async ({ file }) => {
    const SqliteClient = await import("@effect/sql-sqlite-node/SqliteClient")
    const client = SqliteClient.layer({ filename: file })
    const setFull = Layer.effectDiscard(
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe("pragma synchronous = full").raw),
    )
    return full ? Layer.provideMerge(setFull, client) : client
  }

const postgres: Database = async ({ url }) => {
  const PgClient = await import("@effect/sql-pg/PgClient")
  return PgClient.layer({ url: Redacted.make(url), maxConnections: poolSize })
}

const settingsOf = (of: DurabilityClass) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    if (of === "postgres") {
      const rows = yield* sql.unsafe<{ c: string; f: string }>(
        "select current_setting('synchronous_commit') as c, current_setting('fsync') as f",
      )
      return { synchronous_commit: rows[0]!.c, fsync: rows[0]!.f, pool: String(poolSize) }
    }
    const synchronous = yield* sql.unsafe<{ synchronous: number }>("pragma synchronous")
    const journal = yield* sql.unsafe<{ journal_mode: string }>("pragma journal_mode")
    return { synchronous: String(synchronous[0]!.synchronous), journal_mode: journal[0]!.journal_mode }
  })

const open =
  (of: DurabilityClass, database: Database) =>
  async (place: Place, shapes: ReadonlyArray<Shape>): Promise<Opened> => {
    const made = new Map(shapes.map((shape) => [shape.name, workflowOf(shape)]))
    const runner = SingleRunner.layer({
      shardingConfig: { shardLockExpiration: leaseMs, shardLockRefreshInterval: leaseMs / 3 },
    })
    const layers = [...made.values()].map(({ layer }) => layer) as unknown as [Layer.Layer<never, never, any>]
    const live = Layer.mergeAll(...layers).pipe(
      Layer.provideMerge(ClusterWorkflowEngine.layer),
      Layer.provideMerge(runner),
      Layer.provideMerge(await database(place)),
      Layer.provide(Logger.minimumLogLevel(LogLevel.Error)),
    )
    const runtime = ManagedRuntime.make(live as Layer.Layer<any, unknown>)
    await runtime.runPromise(Effect.void)
    return {
      run: (workflow, id) =>
        runtime.runPromise(made.get(workflow)!.workflow.execute({ id }) as Effect.Effect<void, any, any>),
      settings: () => runtime.runPromise(settingsOf(of)),
      close: () => runtime.dispose(),
    }
  }

const packages = ["@effect/workflow", "@effect/cluster", "effect"]
const subject = (of: "sqlite full" | "sqlite normal" | "postgres", database: Database, note?: string): Subject => ({
  name: `Effect workflow, ${of}`,
  engine: "effect",
  class: of,
  mode: "step",
  packages: [...packages, of === "postgres" ? "@effect/sql-pg" : "@effect/sql-sqlite-node"],
  ...(note !== undefined && { note }),
  leaseMs: leaseMs + 1_000,
  fanRuns: 100,
  open: open(of, database),
})

export const subjects: ReadonlyArray<Subject> = [
  subject(
    "sqlite full",
    sqlite(true),
    "`synchronous = full` was set by hand on its connection; it comes with `normal`.",
  ),
  subject("sqlite normal", sqlite(false)),
  subject("postgres", postgres, "A single runner with SQL storage, its own way to run on one machine."),
]
