/** Real processes, killed around an effect whose provider knows no keys: what each policy is worth. */
import { Cairn, type CheckpointStore } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { reviewed } from "./fixtures/policies.js"
import { makePlace, removePlace, sent, startWorker, type Place } from "./support.js"

describe("a worker that is killed", () => {
  let place: Place
  beforeEach(async () => {
    place = await makePlace()
  })
  afterEach(() => removePlace(place))

  const worker = (workflow: "checked" | "reviewed", fault = "") =>
    startWorker(place, "run", fault, { CAIRN_WORKFLOW: workflow }, "policyWorker").ended
  const onFile = <A, E>(effect: Effect.Effect<A, E, CheckpointStore>): Promise<A> =>
    Effect.runPromise(Effect.provide(effect, SqliteStore.layer({ filename: place.filename })))

  for (const point of ["afterIntent", "afterEffect", "beforeCommit"]) {
    it(`at ${point} of an operation with checkFirst is resumed by the next, which sends once in all`, async () => {
      expect((await worker("checked", `${point}:mail`)).signal).toBe("SIGKILL")
      const second = await worker("checked")
      expect(second.events.at(-1), second.output).toMatchObject({ ok: true, value: "id-of-default/run/mail#0" })
      expect((await sent(place)).map(({ key }) => key)).toEqual(["default/run/mail#0"])
    })
  }

  it("after the effect of an operation with review is parked, and completes with a person's answer: one send", async () => {
    expect((await worker("reviewed", "afterEffect:fax")).signal).toBe("SIGKILL")
    const second = await worker("reviewed")
    expect(second.events.at(-1), second.output).toMatchObject({ ok: false, value: "RunParked" })
    expect(await sent(place)).toHaveLength(1)
    const [parked] = await onFile(Cairn.parked())
    expect(parked).toMatchObject({ runId: "run", step: "fax", operation: { idempotencyKey: "default/run/fax#0" } })
    await onFile(Cairn.answer(reviewed, { runId: "run" }, { happened: true, result: { id: "by hand" } }))
    const third = await worker("reviewed")
    expect(third.events.at(-1), third.output).toMatchObject({ ok: true, value: "by hand" })
    expect(await sent(place)).toHaveLength(1)
  })

  it("before the effect of an operation with review is parked with nothing sent, and is sent once by an answer", async () => {
    expect((await worker("reviewed", "afterIntent:fax")).signal).toBe("SIGKILL")
    expect((await worker("reviewed")).events.at(-1)).toMatchObject({ value: "RunParked" })
    expect(await sent(place)).toEqual([])
    await onFile(Cairn.answer(reviewed, { runId: "run" }, { happened: false }))
    expect((await worker("reviewed")).events.at(-1)).toMatchObject({ ok: true, value: "id-of-default/run/fax#1" })
    expect((await sent(place)).map(({ key }) => key)).toEqual(["default/run/fax#1"])
  })
})
