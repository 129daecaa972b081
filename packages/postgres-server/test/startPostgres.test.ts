import { makeTestDatabase, startPostgres } from "@cairn/postgres-server"
import pg from "pg"
import { describe, expect, it } from "vitest"

describe("the server of the test run", () => {
  it("is there, and gives each who asks a database of its own", async () => {
    const [one, two] = [await makeTestDatabase(), await makeTestDatabase()]
    const [version] = await one.query<{ server_version_num: string }>("show server_version_num")
    expect(Number(version!.server_version_num)).toBeGreaterThanOrEqual(140_000)
    await one.query("create table here (id int)")
    expect(await two.query("select 1 from pg_class where relname = 'here'")).toEqual([])
    await one.drop()
    await two.drop()
  })
})

describe("a server of one's own", () => {
  it("comes back after a crash with what was committed", async () => {
    const server = await startPostgres()
    try {
      const database = await makeTestDatabase(server.url)
      await database.query("create table kept as select 1 as id")
      await server.crash()
      await expect(new pg.Client({ connectionString: server.url }).connect()).rejects.toMatchObject({
        code: "ECONNREFUSED",
      })
      await server.start()
      expect(await database.query("select id from kept")).toEqual([{ id: 1 }])
    } finally {
      await server.stop()
    }
  })
})
