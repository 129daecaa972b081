/** The promise API: a store, a worker and a client in one object. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Cairn, MemoryStore, Workflow, type AnyWorkflow } from "../../src/index.js"
import { refuseUnhandled } from "./support/bench.js"
import { Charge, chargeAt, Declined, Provider } from "./support/operations.js"

refuseUnhandled()

const paying = Workflow.make("paying", { version: 1, input: Schema.Struct({ cents: Schema.Int }) })
  .perform("pay", Charge, { payload: ({ input }) => ({ customer: "ada", cents: input.cents }) })
  .output(Schema.String, ({ results }) => results.pay.id)
  .compile()

const open = (handlers: ReturnType<typeof chargeAt>) =>
  Cairn.open({ store: MemoryStore.layer, workflows: [paying], handlers })

describe("Cairn.open", () => {
  it("runs a workflow, attaches to it, and looks at it", async () => {
    const provider = new Provider()
    const cairn = await open(chargeAt(provider))
    const handle = await cairn.start(paying, { cents: 1 }, { runId: "r" })
    expect(await handle.result()).toBe("ch_1")
    const again = await cairn.start(paying, { cents: 1 }, { runId: "r" })
    expect([handle.created, again.created, await again.result()]).toEqual([true, false, "ch_1"])
    const attached = await cairn.attach(paying, { runId: "r" })
    expect((await attached.poll()).status).toBe("completed")
    expect(provider.calls).toHaveLength(1)
    await cairn.close()
  })

  it("rejects with the failure itself, which is told apart by its tag", async () => {
    const cairn = await open(Charge.toLayer(() => Effect.fail(new Declined({ code: "stolen" }))))
    const handle = await cairn.start(paying, { cents: 1 }, { runId: "r" })
    await expect(handle.result()).rejects.toMatchObject({ _tag: "Declined", code: "stolen" })
    await expect(cairn.start(paying, { cents: 2 }, { runId: "r" })).rejects.toMatchObject({ _tag: "RunConflict" })
    await expect(cairn.start(paying, { cents: 0.5 })).rejects.toMatchObject({ _tag: "InvalidValue", field: ".cents" })
    await expect(cairn.attach(paying, { runId: "nobody" })).rejects.toMatchObject({ _tag: "RunNotFound" })
    expect(await cairn.resume({ runId: "r" })).toBe(false)
    await cairn.close()
  })

  it("rejects where a caller without types has left out a handler", async () => {
    const opening = Cairn.open({
      store: MemoryStore.layer,
      workflows: [paying as AnyWorkflow],
      handlers: Layer.empty as never,
    })
    await expect(opening).rejects.toMatchObject({
      _tag: "CompileError",
      diagnostics: [{ code: "CRN107", step: "pay" }],
    })
  })

  it("rejects what still waits when it is closed", async () => {
    const slow = Workflow.make("slow", { version: 1, input: Schema.Null })
      .step(
        "s",
        { effects: [], output: Schema.Null },
        ({ signal }) =>
          new Promise<null>((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted")))),
      )
      .compile()
    const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [slow], drain: 0 })
    const waiting = (await cairn.start(slow, null)).result().then(
      () => "resolved",
      ({ _tag }) => _tag,
    )
    await cairn.close()
    expect(await waiting).toBe("ClientClosed")
  })

  it("rejects every later call with an error that says so and what to do, and closes again without one", async () => {
    const cairn = await open(chargeAt(new Provider()))
    const handle = await cairn.start(paying, { cents: 1 }, { runId: "r" })
    await handle.result()
    await cairn.close()
    const calls = [
      () => cairn.start(paying, { cents: 1 }),
      () => cairn.startMany(paying, [{ input: { cents: 1 } }]),
      () => cairn.attach(paying, { runId: "r" }),
      () => cairn.list(),
      () => cairn.resume({ runId: "r" }),
      () => cairn.cost({ by: "run" }),
      () => handle.result(),
      () => handle.poll(),
    ]
    for (const call of calls) {
      const error = await call().then(
        () => null,
        (thrown: unknown) => thrown,
      )
      expect(error).toBeInstanceOf(Error)
      expect(error).toMatchObject({ _tag: "ClientClosed", message: expect.stringContaining("Cairn.open") })
    }
    await cairn.close()
  })
})

describe("a process that has closed its client", () => {
  it("ends by itself at once: no timer and no handle is left", async () => {
    const program = fileURLToPath(new URL("./fixtures/openAndClose.ts", import.meta.url))
    const child = spawn(process.execPath, ["--conditions=@cairn/source", "--import", "tsx", program], {
      stdio: ["ignore", "pipe", "pipe"],
    })
    const output: Array<string> = []
    child.stdout.on("data", (chunk: Buffer) => output.push(chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => output.push(chunk.toString()))
    const code = await new Promise((resolve) => child.on("close", resolve))
    const text = output.join("")
    expect(code, text).toBe(0)
    const lines = text
      .trim()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line))
    expect(lines[0]).toMatchObject({ result: 42, unread: "rejected" })
    expect(lines[1].exitedAt - lines[0].closedAt).toBeLessThan(500)
  })
})
