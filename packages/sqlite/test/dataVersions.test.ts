/** Data versions over a SQLite file. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { dataVersions } from "../../sql/test/support/dataVersions.js"
import { makeBareClient } from "./internal/bareClient.js"
import { temporaryFile } from "./internal/temporaryFile.js"

dataVersions(
  "SQLite",
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const driver = yield* SqliteDriver.make({ filename })
    const client = yield* makeBareClient(filename)
    yield* client.unsafe("pragma busy_timeout = 5000")
    const run = (text: string) => client.unsafe(text)
    yield* run("create table stock (sku text primary key, amount integer, note text, seen text, picture blob) strict")
    yield* run("insert into stock values ('a1', 5, null, '2026-01-01', x'00ff'), ('a2', 7, '', null, null)")
    yield* run("insert into stock (sku, amount) values ('b1', 1)")
    return { driver, stock: "stock", parameter: "?", run, snapshot: null }
  }),
)
