/** One workflow in which every combinator stands, operations in most of them. */
import { OnUnknown, Operation, Workflow } from "@cairn/core"
import { Schema } from "effect"

const Act = Operation.make("journey.act", {
  payload: Schema.Struct({ of: Schema.String }),
  success: Schema.String,
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
  timeout: "10 seconds",
})
const Book = Operation.make("journey.book", {
  payload: Schema.Struct({ of: Schema.String }),
  success: Schema.String,
  onUnknown: OnUnknown.checkFirst(),
  timeout: "10 seconds",
})

const packing = Workflow.make("packing", { version: 1, input: Schema.String })
  .step("fold", { effects: [], output: Schema.String }, ({ input }) => `folded ${input}`)
  .perform("pack", Act, { payload: ({ results }) => ({ of: results.fold }) })
  .output(Schema.String, ({ results }) => results.pack)
  .compile()

export const journey = Workflow.make("journey", { version: 1, input: Schema.Int })
  .branch("route", ({ input }) => (input > 2 ? "far" : "near"), {
    far: (flow) => flow.perform("ticket", Book, { payload: () => ({ of: "far" }) }),
    near: (flow) => flow,
  })
  .loop(
    "plan",
    { state: Schema.Int, initial: ({ input }) => input, maxIterations: 5 },
    (flow) => flow.perform("ask", Act, { payload: ({ state, turn }) => ({ of: `ask ${turn} ${state}` }) }),
    ({ state, turn }) => ({ done: turn === 1, state: state + 1 }),
  )
  .forEach(
    "stops",
    {
      items: ({ results }) => ["a", "b", "c"].map((at) => `${at}${results.plan}`),
      key: (item) => item,
      concurrency: 2,
    },
    (flow) => flow.perform("reserve", Act, { payload: ({ item }) => ({ of: item }) }),
  )
  .parallel("before", {
    bags: (flow) => flow.child("pack", packing, { input: () => "shirts" }),
    papers: (flow) => flow.signal("visa", { schema: Schema.String }).sleep("rest", "3 seconds"),
  })
  .review("go", {
    ...{ decision: Schema.Struct({ note: Schema.String }), show: ({ results }) => results.stops.total },
    ...{ deadline: "1 hour", onReject: "fail", onTimeout: "fail" },
  })
  .sleep("night", "8 seconds")
  .perform("leave", Act, { payload: ({ results }) => ({ of: `leave ${results.stops.total}` }) })
  .output(Schema.String, ({ results }) => `${results.leave} with ${results.before.bags.pack}, ${results.go.outcome}`)
  .compile()

/** Items that fail now and then, each tried again after a while: every retry is made by an owner of its own. */
export const stubborn = Workflow.make("stubborn", { version: 1, input: Schema.Int })
  .forEach(
    "all",
    { items: ({ input }) => Array.from({ length: input }, (_, of) => of), key: String, onFailure: "collect" },
    (flow) =>
      flow.step("odd", { effects: [], output: Schema.Int, retry: { times: 2, delay: "5 seconds" } }, ({ item }) => {
        if (item % 2 === 1) throw new Error("odd")
        return item
      }),
  )
  .output(Schema.Int, ({ results }) => results.all.failed)
  .compile()
