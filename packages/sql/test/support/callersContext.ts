/**
 * In whose async context the code of a workflow runs (field case P137): in that of whoever has started the worker, whoever wakes it.
 * Registered by each store's own tests over its own database.
 */
import {
  Cairn,
  contextFromDriver,
  Effects,
  OnUnknown,
  Operation,
  Workflow,
  type AnyWorkflow,
  type CheckpointDriver,
} from "@cairn/core"
import { Effect, Layer, Logger, Schema, type Scope } from "effect"
import { AsyncLocalStorage } from "node:async_hooks"
import { describe, expect, it } from "vitest"

const callers = new AsyncLocalStorage<string>()

/** Who is seen where: each place of a user's code, in each run. */
class Seen {
  private readonly places = new Map<string, Array<string | undefined>>()

  note(place: string): void {
    this.places.set(place, [...(this.places.get(place) ?? []), callers.getStore()])
  }

  get all(): Record<string, ReadonlyArray<string | undefined>> {
    return Object.fromEntries([...this.places].map(([place, seen]) => [place, [...new Set(seen)]]))
  }

  get counts(): Record<string, number> {
    return Object.fromEntries([...this.places].map(([place, seen]) => [place, seen.length]))
  }
}

const Ship = Operation.make("context.ship", {
  payload: Schema.String,
  success: Schema.String,
  onUnknown: OnUnknown.checkFirst(),
  timeout: "200 millis",
})

/** Every kind of code that a workflow calls, and everything that makes a run go on: timers, signals, decisions, promises. */
const every = (seen: Seen, hasTransactions: boolean): AnyWorkflow => {
  const Noted = Schema.String.pipe(
    Schema.filter(() => {
      seen.note("gate")
      return true
    }),
  )
  let flow = (Workflow.make as any)("every", { version: 1, input: Schema.String })
    .step("promised", { effects: [], output: Schema.String }, async ({ input }: any) => {
      seen.note("promised")
      await new Promise((resolve) => setTimeout(resolve, 2))
      seen.note("promised, later")
      return input
    })
    .step("plain", { effects: [], output: Noted }, ({ results }: any) => {
      seen.note("plain")
      return results.promised
    })
    .sleep("nap", 20)
    .step("effectful", { effects: [], output: Schema.Void }, () =>
      Effect.gen(function* () {
        seen.note("effectful")
        yield* Effect.sleep(2)
        seen.note("effectful, later")
      }),
    )
    .parallel("both", {
      left: (arm: any) => arm.step("left", { effects: [], output: Schema.Void }, () => seen.note("left")),
      right: (arm: any) => arm.step("right", { effects: [], output: Schema.Void }, async () => seen.note("right")),
    })
    .step("flaky", { effects: [], output: Schema.Void, retry: { times: 1, delay: 5 } }, ({ input }: any) => {
      seen.note("flaky")
      if (!failed.has(input)) {
        failed.add(input)
        throw new Error("once")
      }
    })
    .perform("ship", Ship, {
      payload: ({ input }: any) => {
        seen.note("payload")
        return input
      },
    })
    .signal("go", { schema: Schema.Null })
    .branch(
      "route",
      () => {
        seen.note("branch")
        return "on"
      },
      {
        on: (arm: any) => arm.step("on", { effects: [], output: Schema.Void }, () => seen.note("after a signal")),
        off: (arm: any) => arm,
      },
    )
    .review("approve", {
      ...{ decision: Schema.Null, deadline: "1 hour", onReject: "fail", onTimeout: "fail" },
      show: () => {
        seen.note("show")
        return 1
      },
    })
    .step("last", { effects: [], output: Schema.Void }, () => seen.note("after a decision"))
  const failed = new Set<string>()
  if (hasTransactions) {
    flow = flow.step("books", { effects: [Effects.transaction], output: Schema.Void }, async ({ query }: any) => {
      seen.note("transaction")
      await query("select 1")
      seen.note("transaction, later")
    })
  }
  const workflow = flow
    .output(Schema.String, ({ input }: any) => {
      seen.note("output")
      return input
    })
    .compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}

/** The first sending of each is cut off, so that the check is asked. */
const shipping = (seen: Seen) => {
  const tried = new Set<string>()
  return Ship.toLayer(
    (payload) =>
      Effect.gen(function* () {
        seen.note("handler")
        yield* Effect.sleep(2)
        seen.note("handler, later")
        if (tried.has(payload)) return payload
        tried.add(payload)
        return yield* Effect.die("no answer")
      }),
    {
      check: async () => {
        seen.note("check")
        return { happened: false }
      },
    },
  )
}

const until = async (isThere: () => Promise<boolean>): Promise<void> => {
  while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, 50))
}

const runs = 50

/** Where it is looked. */
const places = [
  ...["promised", "promised, later", "plain", "gate", "effectful", "effectful, later", "left", "right", "flaky"],
  ...[
    "payload",
    "handler",
    "handler, later",
    "check",
    "branch",
    "after a signal",
    "show",
    "after a decision",
    "output",
  ],
]

export const callersContexts = (
  name: string,
  open: Effect.Effect<CheckpointDriver, unknown, Scope.Scope>,
  hasTransactions = true,
): void => {
  describe(`over ${name}, a workflow's code`, () => {
    it(`runs in the context of whoever opened the worker, not of the ${runs} who start, signal and decide`, async () => {
      const seen = new Seen()
      const workflow = every(seen, hasTransactions)
      const store = Layer.scopedContext(Effect.map(Effect.orDie(open), contextFromDriver)).pipe(
        Layer.merge(Logger.remove(Logger.defaultLogger)),
      )
      const cairn = await callers.run("opener", () =>
        Cairn.open({
          ...{ store, workflows: [workflow], handlers: shipping(seen), concurrency: runs, pollInterval: 50 },
        } as any),
      )
      const outputs = await Promise.all(
        Array.from({ length: runs }, (_, n) =>
          callers.run(`tenant-${n}`, async () => {
            const of = { runId: `r${n}` }
            const handle = await cairn.start(workflow, `i${n}`, of)
            // Without `events`: whoever reads those decodes outputs, in a context of their own.
            await until(async () => (await handle.poll()).status === "waiting")
            await cairn.signal(workflow, { ...of, signalId: `s${n}` }, "go", null)
            await until(async () => (await handle.poll()).status === "review")
            await cairn.review(workflow, of, { by: "ann", approve: null })
            return [await handle.result(), callers.getStore()]
          }),
        ),
      )
      await cairn.close()
      // Each caller is where it was.
      expect(outputs).toEqual(Array.from({ length: runs }, (_, n) => [`i${n}`, `tenant-${n}`]))
      const expected = hasTransactions ? [...places, "transaction", "transaction, later"] : places
      expect(seen.all).toEqual(Object.fromEntries(expected.map((place) => [place, ["opener"]])))
      expect(Math.min(...Object.values(seen.counts))).toBeGreaterThanOrEqual(runs)
    })
  })
}
