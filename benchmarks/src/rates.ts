/** What the disk and the databases do in a second, whatever runs on them. Run in a process of its own. */
import Database from "better-sqlite3"
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs"
import path from "node:path"
import pg from "pg"

const payload = JSON.stringify("0123456789abcdefghij")

/** How often a second, measured for so long. */
const rate = async (forMs: number, once: (index: number) => unknown): Promise<number> => {
  const began = performance.now()
  let index = 0
  while (performance.now() - began < forMs) await once(index++)
  return index / ((performance.now() - began) / 1_000)
}

const fsyncs = async (folder: string, forMs: number): Promise<number> => {
  const file = openSync(path.join(folder, "fsync"), "w")
  const block = Buffer.alloc(4_096, 1)
  const perSecond = await rate(forMs, (index) => {
    writeSync(file, block, 0, block.length, index * block.length)
    fdatasyncSync(file)
  })
  closeSync(file)
  return perSecond
}

const sqlite = async (folder: string, synchronous: "full" | "normal", forMs: number) => {
  const db = new Database(path.join(folder, `rates-${synchronous}.db`))
  db.pragma("journal_mode = wal")
  db.pragma(`synchronous = ${synchronous}`)
  db.exec("create table step (run integer, seq integer, result text, primary key (run, seq)) without rowid")
  const insert = db.prepare("insert into step values (?, ?, ?)")
  const batch = db.transaction((run: number, rows: number) => {
    for (let seq = 0; seq < rows; seq++) insert.run(run, seq, payload)
  })
  const commits = await rate(forMs, (index) => batch(index, 1))
  const batches = await rate(forMs, (index) => batch(1e9 + index, 100))
  db.close()
  return { commits, rows: batches * 100 }
}

const postgres = async (url: string, forMs: number) => {
  const pool = new pg.Pool({ connectionString: url, max: 32 })
  await pool.query("create table step (run integer, seq integer, result text, primary key (run, seq))")
  const insert = (run: number, rows: number) =>
    pool.query({
      name: "insert",
      text: "insert into step select $1, seq, $2 from generate_series(1, $3) as seq",
      values: [run, payload, rows],
    })
  const commits = await rate(forMs, (index) => insert(index, 1))
  const batches = await rate(forMs, (index) => insert(1e9 + index, 100))
  const together = await Promise.all(
    Array.from({ length: 32 }, (_, one) => rate(forMs, (index) => insert(-1 - one - 32 * index, 1))),
  )
  await pool.end()
  return { commits, rows: batches * 100, commitsOf32: together.reduce((sum, each) => sum + each, 0) }
}

const [folder = "", url = "", forMs = "1000"] = process.argv.slice(2)
const time = Number(forMs)
const full = await sqlite(folder, "full", time)
const normal = await sqlite(folder, "normal", time)
const server = await postgres(url, time)
process.send!({
  "fdatasync of 4 KiB": await fsyncs(folder, time),
  "SQLite full: commits of one row": full.commits,
  "SQLite full: rows, 100 a transaction": full.rows,
  "SQLite normal: commits of one row": normal.commits,
  "SQLite normal: rows, 100 a transaction": normal.rows,
  "Postgres: commits of one row, one connection": server.commits,
  "Postgres: commits of one row, 32 connections": server.commitsOf32,
  "Postgres: rows, 100 a transaction, one connection": server.rows,
})
process.disconnect()
