import { Absurd } from "absurd-sdk"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import pg from "pg"
import { concurrency, poolSize, type Opened, type Place, type Shape, type Subject } from "../Subject.js"

const claimSeconds = 10
const pollMs = 10
const pause = () => new Promise((resolve) => setTimeout(resolve, pollMs))

// Not in its npm package, and not ours to copy: see the README beside this folder.
const schemaFile = process.env["ABSURD_SQL"] ?? path.resolve(import.meta.dirname, "../../.peers/absurd.sql")

const install = async (pool: pg.Pool): Promise<void> => {
  const { rows } = await pool.query("select to_regnamespace('absurd') is not null as there")
  if (rows[0].there !== true) await pool.query(readFileSync(schemaFile, "utf8"))
}

const open = async ({ url }: Place, shapes: ReadonlyArray<Shape>): Promise<Opened> => {
  const pool = new pg.Pool({ connectionString: url, max: poolSize })
  await install(pool)
  const absurd = new Absurd({ db: pool, queueName: "bench" })
  await absurd.createQueue()
  for (const { body, name, steps } of shapes) {
    absurd.registerTask({ name, defaultMaxAttempts: 1_000 }, async (_: unknown, ctx) => {
      for (let index = 0; index < steps; index++) await ctx.step(`s${index}`, async () => body(index))
      return null
    })
  }
  await absurd.startWorker({ concurrency, claimTimeout: claimSeconds })
  const spawn = async (workflow: string, idempotencyKey: string) =>
    (await absurd.spawn(workflow, null, { idempotencyKey, retryStrategy: { kind: "none" } })).taskID
  return {
    run: async (workflow, runId) => {
      const taskId = await spawn(workflow, runId)
      // Its own wait looks after 50, 100, 200 ms ..: the run would be measured in those.
      for (;;) {
        const snapshot = await absurd.fetchTaskResult(taskId)
        if (snapshot?.state === "completed") return
        if (snapshot?.state === "failed") throw new Error(JSON.stringify(snapshot.failure))
        await pause()
      }
    },
    runAll: async (workflow, runIds) => {
      const done = async () =>
        Number((await pool.query("select count(*) as n from absurd.t_bench where state = 'completed'")).rows[0].n)
      const before = await done()
      await Promise.all(runIds.map((runId) => spawn(workflow, runId)))
      while ((await done()) < before + runIds.length) await pause()
    },
    goOn: async () => new Promise(() => {}),
    settings: async () => {
      const { rows } = await pool.query(
        "select current_setting('synchronous_commit') as c, current_setting('fsync') as f, absurd.get_schema_version() as v",
      )
      const [row] = rows as [{ c: string; f: string; v: string }]
      return {
        synchronous_commit: row.c,
        fsync: row.f,
        pool: String(poolSize),
        concurrency: String(concurrency),
        schema: row.v,
      }
    },
    close: async () => {
      await absurd.close()
      await pool.end()
    },
  }
}

const subject: Subject = {
  name: "Absurd, postgres",
  engine: "absurd",
  class: "postgres",
  mode: "step",
  packages: ["absurd-sdk", "pg"],
  note: "Its client looks for a result after 50 ms and more; here it looks every 10 ms. Its worker, when idle, looks for runs every 250 ms, which is in the run's time and not in the step's.",
  leaseMs: claimSeconds * 1_000,
  open,
}

export const subjects: ReadonlyArray<Subject> = existsSync(schemaFile) ? [subject] : []
