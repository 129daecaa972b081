/** Whatever names and ids hold, they are kept as they are: they are no SQL, no pattern and no path. */
import { Cairn, CheckpointStore, escapeSegment, MemoryStore, Plan, type StoreError } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { Effect, Layer, Redacted, Schema } from "effect"
import { mkdirSync, readdirSync } from "node:fs"
import path from "node:path"
import { describe, expect, it } from "vitest"
import { storeAt } from "../src/store.js"
import { load, over, usePlaces } from "./internal/places.js"
import { startInProcess } from "./internal/workers.js"

const places = usePlaces()

type Store = Layer.Layer<CheckpointStore, StoreError>

const stores: Readonly<Record<string, () => Store>> = {
  // One memory for all who build it, as the others have one database.
  memory: () => {
    const made = Effect.runSync(Effect.cached(Effect.provide(CheckpointStore, MemoryStore.layer)))
    return Layer.effect(CheckpointStore, made)
  },
  SQLite: () => places.make("SQLite").store,
  Postgres: () => places.make("Postgres").store,
}

const where = Object.keys(stores)

/** A workflow of one step, both of any name, which gives back its input. */
const echo = (workflow: string, step = "echo") =>
  Plan.make(workflow, {
    version: 1,
    input: Schema.Struct({ text: Schema.String }),
    steps: [Plan.step(step, { effects: [], output: Schema.String }, ({ input }) => input.text)],
    output: { schema: Schema.String, select: ({ input }) => input.text },
  })

const statements = [
  "x'; DROP TABLE cairn_run;--",
  'x"; drop schema cairn cascade; --',
  "a' OR 1=1--",
  "$.a') --",
  "$1",
  "?1",
  ":a @b",
  "\\'; delete from cairn_step; --",
  "');delete from cairn_worker;--",
  "${process.exit()}",
  "{a,NULL}",
  "E'\\047'",
]

describe.each(where)("on %s", (name) => {
  it("a name that is a statement is stored as it is, wherever it stands, and every other run is left alone", async () => {
    const store = stores[name]!()
    const body = Effect.gen(function* () {
      const bystander = yield* Cairn.start(echo("plain"), { text: "untouched" }, { runId: "bystander" })
      const before = yield* load("bystander")
      for (const text of statements) {
        const workflow = echo(text, text)
        expect(workflow.diagnostics).toEqual([])
        yield* startInProcess(
          { store, log: "", address: "" },
          { by: "", workflows: [workflow], options: { namespace: text, pollInterval: 10 } },
        )
        const { result } = yield* Cairn.start(workflow, { text }, { runId: text, namespace: text })
        expect(yield* result).toBe(text)
        const attached = yield* Cairn.attach(workflow, { runId: text, namespace: text })
        expect((yield* attached.poll).status).toBe("completed")
        // Ids are no part of what runs another workflow.
        expect(yield* Effect.flip(Cairn.attach(workflow, { runId: "bystander" }))).toMatchObject({
          _tag: "RunConflict",
        })
      }
      expect(yield* load("bystander")).toEqual(before)
      expect((yield* bystander.poll).status).toBe("pending")
      const states = yield* Effect.forEach(statements, (text) => load(text, text))
      expect(states.map(({ run, steps }) => [run.namespace, run.runId, run.workflow, steps[0]?.path])).toEqual(
        statements.map((text) => [text, text, text, escapeSegment(text)]),
      )
    })
    await over({ store }, Effect.scoped(body))
  })

  it("a worker whose id is a statement or a pattern holds and gives up its own runs only", async () => {
    const store = stores[name]!()
    const body = Effect.gen(function* () {
      const driver = yield* CheckpointStore
      const workers = [...statements, "%", "_", "%%", "worker", "work_r", "WORKER", "worker "]
      const claim = (workerId: string) =>
        driver.claim({
          namespace: "default",
          workerId,
          claimToken: `token of ${workerId}`,
          workflows: [{ name: "echo", version: 1 }],
          runIds: null,
          limit: 1,
        })
      for (const workerId of workers) {
        yield* Cairn.start(echo("echo"), { text: workerId })
        yield* driver.beat(workerId, 600_000)
        expect(yield* claim(workerId)).toMatchObject([{ leaseOwner: workerId, claimToken: `token of ${workerId}` }])
      }
      const held = Effect.map(
        Effect.forEach(workers, (workerId) => driver.beat(workerId, 600_000)),
        (beats) => beats.map(({ leases }) => leases.length),
      )
      for (const [index, workerId] of workers.entries()) {
        yield* driver.releaseWorker(workerId)
        expect(yield* held, workerId).toEqual(workers.map((_, n) => (n <= index ? 0 : 1)))
      }
    })
    await over({ store }, body)
  })

  it("ids and namespaces that are patterns never stand for others", async () => {
    const store = stores[name]!()
    const ids = ["%", "_", "a_b", "aXb", "a%", "A_B", "a*b", "[a-z]", "a?b", "."]
    const body = Effect.gen(function* () {
      const driver = yield* CheckpointStore
      const workflow = echo("echo")
      for (const namespace of ids) {
        for (const runId of ids) {
          yield* Cairn.start(workflow, { text: `${namespace} ${runId}` }, { namespace, runId })
        }
      }
      for (const namespace of ids) {
        const worker = `of ${namespace}`
        yield* driver.beat(worker, 600_000)
        const claim = (runIds: ReadonlyArray<string> | null, workflowName = "echo") =>
          driver.claim({
            namespace,
            workerId: worker,
            claimToken: "t",
            workflows: [{ name: workflowName, version: 1 }],
            runIds,
            limit: 1_000,
          })
        expect(yield* claim(null, "%")).toEqual([])
        for (const runId of ids.slice(0, 5)) {
          expect((yield* claim([runId])).map((run) => [run.namespace, run.runId])).toEqual([[namespace, runId]])
        }
        const rest = yield* claim(null)
        expect(rest.map((run) => [run.namespace, run.runId]).sort()).toEqual(
          ids
            .slice(5)
            .map((runId) => [namespace, runId])
            .sort(),
        )
        // Another input under the same id is another run's: no pattern has found it.
        const taken = yield* Effect.flip(Cairn.start(workflow, { text: "other" }, { namespace, runId: "%" }))
        expect(taken).toMatchObject({ _tag: "RunConflict", reason: "InputDiffers" })
      }
      const missing = yield* Effect.flip(Cairn.attach(workflow, { namespace: "a%", runId: "a" }))
      expect(missing).toMatchObject({ _tag: "RunNotFound", namespace: "a%", runId: "a" })
    })
    await over({ store }, body)
  })

  it("ids that no database could hold are refused by a typed error, before anything is stored", async () => {
    const body = Effect.gen(function* () {
      for (const id of ["", "a\u0000b", "\ud800", "x".repeat(256)]) {
        const started = [{ runId: id }, { runId: "r", namespace: id }]
        for (const options of started) {
          const error = yield* Effect.flip(Cairn.start(echo("echo"), { text: "" }, options))
          expect(error).toMatchObject({ _tag: "InvalidId" })
        }
      }
      const store = yield* CheckpointStore
      expect(yield* Effect.flip(store.findRun("default", "r"))).toMatchObject({ _tag: "RunNotFound" })
    })
    await over({ store: stores[name]!() }, body)
  })
})

describe("a schema on Postgres", () => {
  it("whose name is a statement is a schema of that name, and nothing else happens", async () => {
    const { query, url } = places.database()
    const schemas = `select nspname from pg_namespace where nspname !~ '^pg_' order by nspname collate "C"`
    const before = (await query<{ nspname: string }>(schemas)).map(({ nspname }) => nspname)
    for (const schema of statements) {
      const options = { url: Redacted.make(url), schema, maxConnections: 1, listen: false }
      await over(
        { store: Layer.fresh(PostgresStore.layer(options)) },
        Effect.gen(function* () {
          yield* Cairn.start(echo("echo"), { text: schema }, { runId: "r" })
          expect((yield* load("r")).run.status).toBe("pending")
        }),
      )
      expect(await query("select 1 from pg_tables where schemaname = $1", [schema])).toHaveLength(13)
    }
    const after = (await query<{ nspname: string }>(schemas)).map(({ nspname }) => nspname)
    expect(new Set(after)).toEqual(new Set([...before, ...statements]))
  })
})

describe("a file on SQLite", () => {
  it("is the only one that is written, whatever ids say", async () => {
    const folder = path.join(places.folder, "only")
    mkdirSync(path.join(folder, "data"), { recursive: true })
    const cwd = readdirSync(process.cwd())
    const filename = path.join(folder, "data", "runs.db")
    const ids = [
      "..",
      ".",
      "../../package",
      "..\\..\\package",
      "/tmp/x",
      "C:",
      "C:\\x",
      "CON",
      "NUL",
      "file:x?mode=rwc",
      "~",
      "a/b",
      "x.db-wal",
    ]
    const seen: Array<ReadonlyArray<string>> = []
    const body = Effect.gen(function* () {
      const workflow = echo("../../workflow", "../../step")
      for (const id of ids) {
        const store = Layer.fresh(storeAt(filename))
        yield* startInProcess(
          { store, log: "", address: "" },
          { by: "", workflows: [workflow], options: { namespace: id, pollInterval: 10 } },
        )
        const { result } = yield* Cairn.start(workflow, { text: id }, { namespace: id, runId: id })
        expect(yield* result).toBe(id)
      }
      seen.push(readdirSync(path.join(folder, "data")).sort())
    })
    await over({ store: Layer.fresh(storeAt(filename)) }, Effect.scoped(body))
    expect(seen).toEqual([["runs.db", "runs.db-shm", "runs.db-wal"]])
    expect(readdirSync(folder)).toEqual(["data"])
    expect(readdirSync(path.join(folder, "data"))).toEqual(["runs.db"])
    expect(readdirSync(process.cwd())).toEqual(cwd)
  })
})
