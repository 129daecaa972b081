/**
 * What the same machine, disk and driver allow: a runner that keeps nothing but its promise of durability. It has no
 * leases, schemas, retries or types; a step is one insert and one update, in one transaction. `alone`: a transaction a
 * step. `grouped`: all steps that wait at one moment, of any run, share a transaction.
 */
import { concurrency, poolSize, type Opened, type Place, type Shape, type Subject } from "../Subject.js"

interface Row {
  readonly run: string
  readonly seq: number
  readonly text: string
}

interface Table {
  /** Durable when it resolves. No two rows are of one run. */
  readonly write: (rows: ReadonlyArray<Row>) => void | Promise<void>
  readonly start: (run: string) => void | Promise<void>
  readonly last: (run: string) => number | Promise<number>
  readonly settings: () => Promise<Record<string, string>>
  readonly close: () => void | Promise<void>
}

const openSqlite = async (file: string, synchronous: "full" | "normal"): Promise<Table> => {
  const { default: Database } = await import("better-sqlite3")
  const db = new Database(file)
  db.pragma("journal_mode = wal")
  db.pragma(`synchronous = ${synchronous}`)
  db.exec("create table if not exists run (id text primary key, seq integer not null) without rowid")
  db.exec("create table if not exists step (run text, seq integer, result text, primary key (run, seq)) without rowid")
  const insert = db.prepare("insert into step values (?, ?, ?)")
  const update = db.prepare("update run set seq = ? where id = ?")
  const start = db.prepare("insert into run values (?, -1) on conflict do nothing")
  const last = db.prepare("select seq from run where id = ?").pluck()
  const write = db.transaction((rows: ReadonlyArray<Row>) => {
    for (const { run, seq, text } of rows) {
      insert.run(run, seq, text)
      update.run(seq, run)
    }
  })
  return {
    write: (rows) => write.immediate(rows),
    start: (run) => void start.run(run),
    last: (run) => last.get(run) as number,
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

const openPostgres = async (url: string): Promise<Table> => {
  const { default: pg } = await import("pg")
  const pool = new pg.Pool({ connectionString: url, max: poolSize })
  await pool.query("create table if not exists run (id text primary key, seq integer not null)")
  await pool.query("create table if not exists step (run text, seq integer, result text, primary key (run, seq))")
  const write = {
    name: "write",
    text: `with rows as (select * from unnest($1::text[], $2::int[], $3::text[]) as r (run, seq, result)),
      added as (insert into step select * from rows)
      update run set seq = rows.seq from rows where run.id = rows.run`,
  }
  return {
    write: async (rows) => {
      const values = [rows.map(({ run }) => run), rows.map(({ seq }) => seq), rows.map(({ text }) => text)]
      await pool.query({ ...write, values })
    },
    start: async (run) => void (await pool.query("insert into run values ($1, -1) on conflict do nothing", [run])),
    last: async (run) => (await pool.query("select seq from run where id = $1", [run])).rows[0].seq as number,
    settings: async () => {
      const { rows } = await pool.query(
        "select current_setting('synchronous_commit') as c, current_setting('fsync') as f",
      )
      return { synchronous_commit: rows[0].c, fsync: rows[0].f, pool: String(poolSize) }
    },
    close: () => pool.end(),
  }
}

type Write = (row: Row) => Promise<void>

const alone =
  (table: Table): Write =>
  async (row) =>
    table.write([row])

/** One transaction at a time; what arrives meanwhile is the next. */
const grouped = (table: Table): Write => {
  let waiting: Array<{ readonly row: Row; readonly done: () => void; readonly failed: (cause: unknown) => void }> = []
  let flushing = false
  const flush = async () => {
    flushing = true
    while (waiting.length > 0) {
      // Whoever is about to write comes first, and shares the transaction.
      await new Promise<void>((resolve) => setImmediate(resolve))
      const group = waiting
      waiting = []
      try {
        await table.write(group.map(({ row }) => row))
        for (const { done } of group) done()
      } catch (cause) {
        for (const { failed } of group) failed(cause)
      }
    }
    flushing = false
  }
  return (row) =>
    new Promise((done, failed) => {
      waiting.push({ row, done, failed })
      if (!flushing) void flush()
    })
}

/** So many at once, as in the engines. */
const inSlots = async <A>(
  values: ReadonlyArray<A>,
  slots: number,
  each: (value: A) => Promise<void>,
): Promise<void> => {
  let next = 0
  const slot = async () => {
    while (next < values.length) await each(values[next++]!)
  }
  await Promise.all(Array.from({ length: slots }, slot))
}

const open =
  (openTable: (place: Place) => Promise<Table>, writer: (table: Table) => Write, slots: number) =>
  async (place: Place, shapes: ReadonlyArray<Shape>): Promise<Opened> => {
    const table = await openTable(place)
    const write = writer(table)
    const byName = new Map(shapes.map((shape) => [shape.name, shape]))
    const run = async (workflow: string, id: string) => {
      const { body, steps } = byName.get(workflow)!
      await table.start(id)
      for (let seq = (await table.last(id)) + 1; seq < steps; seq++) {
        const result = body(seq)
        await write({ run: id, seq, text: JSON.stringify(typeof result === "string" ? result : await result) })
      }
    }
    return {
      run,
      runAll: (workflow, ids) => inSlots(ids, slots, (id) => run(workflow, id)),
      settings: table.settings,
      close: async () => table.close(),
    }
  }

const tables = {
  "sqlite full": ({ file }: Place) => openSqlite(file, "full"),
  "sqlite normal": ({ file }: Place) => openSqlite(file, "normal"),
  postgres: ({ url }: Place) => openPostgres(url),
} as const

const packages = { "sqlite full": ["better-sqlite3"], "sqlite normal": ["better-sqlite3"], postgres: ["pg"] }

export const subjects: ReadonlyArray<Subject> = (["sqlite full", "sqlite normal", "postgres"] as const).flatMap(
  (of) => [
    {
      name: `Limit, ${of}, a transaction a step`,
      engine: "limit",
      class: of,
      mode: "step" as const,
      packages: packages[of],
      leaseMs: 0,
      open: open(tables[of], alone, concurrency),
    },
    {
      name: `Limit, ${of}, grouped over runs`,
      engine: "limit",
      class: of,
      mode: "step" as const,
      packages: packages[of],
      leaseMs: 0,
      // No worker limits it: every run may have a step in the group.
      open: open(tables[of], grouped, 1_000),
    },
  ],
)
