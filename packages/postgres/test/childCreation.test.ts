/** A child on its way into the database holds its parent where it is: whoever takes the parent over comes before it or after it. */
import { PostgresDriver } from "@cairn/postgres"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import { reserving } from "../src/internal/pooledConnection.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"
import { claimOf, newRun, ownedRuns } from "./internal/rows.js"

const database = useDatabase()

const copied =
  "namespace, workflow, version, plan_hash, status, seq, fence, previous_until, inbox, recoveries, interruptions, priority, created_at, updated_at, input_hash"

it.scopedLive("a parent cannot be claimed while its child is being created", () =>
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const settings = { url: database.url, schema, listen: false, maxConnections: 4 }
    const driver = yield* PostgresDriver.make({ ...settings, applicationName: schema })
    const [lease] = yield* ownedRuns(driver, "owner", ["parent"])
    const child = { ...newRun("child"), parentRunId: "parent", parentPath: "ask" }

    // Somebody else is about to create a run of that id: the child waits in the middle of its statement.
    const other = yield* openDatabase(settings)
    const connection = yield* reserving(other.client)
    const run = (text: string) => connection.execute(text, [], undefined)
    yield* run("begin")
    yield* run(
      `insert into ${schema}.run (run_id, ${copied}) select 'child', ${copied} from ${schema}.run where run_id = 'parent'`,
    )
    const creating = yield* Effect.fork(driver.createChild(child, lease!))
    const waits = "select 1 from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'"
    yield* Effect.repeat(query(database, waits, [schema]), { until: (rows) => rows.length > 0 })

    // Its owner is dead by now, and another one looks for work.
    yield* query(database, `update ${schema}.worker set until = 1 where worker_id = 'owner'`)
    yield* driver.beat("heir", 60_000)
    expect(yield* driver.claim(claimOf("heir"))).toEqual([])

    yield* run("rollback")
    expect((yield* Fiber.join(creating))?.created).toBe(true)
    const [claimed] = yield* driver.claim(claimOf("heir", { runIds: ["parent"] }))
    expect(claimed?.runId).toBe("parent")
    expect(yield* driver.findRun("test", "child")).not.toBeNull()
    expect(yield* driver.createChild({ ...child, runId: "late" }, lease!)).toBeNull()
  }),
)
