import { Cairn, MemoryStore, OnUnknown, Operation, Plan, type AnyWorkflow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import {
  concurrency,
  poolSize,
  type DurabilityClass,
  type Opened,
  type Place,
  type Shape,
  type Subject,
} from "../Subject.js"

// Short, so that a resume after a kill need not be waited for long.
const leaseMs = 2_000

const Paid = Operation.make("bench.paid", {
  payload: Schema.Struct({ shape: Schema.String, index: Schema.Int }),
  success: Schema.String,
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 hour" }),
  timeout: leaseMs / 2,
})

const stepOf = (shape: Shape, index: number) =>
  shape.operations?.includes(index) === true
    ? Plan.perform(`s${index}`, Paid, { payload: () => ({ shape: shape.name, index }) })
    : Plan.step(`s${index}`, { effects: [], output: Schema.String }, () => shape.body(index))

const workflowOf = (shape: Shape): AnyWorkflow =>
  Plan.make(shape.name, {
    version: 1,
    input: Schema.Void,
    steps: Array.from({ length: shape.steps }, (_, index) => stepOf(shape, index)),
  })

const handlersOf = (shapes: ReadonlyArray<Shape>) =>
  shapes.some(({ operations }) => operations !== undefined)
    ? Paid.toLayer(({ index, shape }) =>
        Effect.promise(async () => shapes.find(({ name }) => name === shape)!.body(index)),
      )
    : Layer.empty

type Store = (place: Place) => Promise<any>

const stores: Readonly<Record<DurabilityClass, Store>> = {
  memory: async () => MemoryStore.layer,
  "sqlite full": async ({ file }) => (await import("@cairn/sqlite")).SqliteStore.layer({ filename: file }),
  "sqlite normal": async ({ file }) =>
    (await import("@cairn/sqlite")).SqliteStore.layer({ filename: file, synchronous: "normal" }),
  postgres: async ({ url }) => (await import("@cairn/postgres")).PostgresStore.layer({ url, maxConnections: poolSize }),
}

const open =
  (store: Store, durability: "step" | "barrier") =>
  async (place: Place, shapes: ReadonlyArray<Shape>): Promise<Opened> => {
    const workflows = new Map(shapes.map((shape) => [shape.name, workflowOf(shape)]))
    const client = await Cairn.open({
      store: await store(place),
      workflows: [...workflows.values()],
      handlers: handlersOf(shapes),
      ...{ concurrency, durability, lease: leaseMs },
    } as never)
    return {
      run: async (workflow, runId) => {
        const handle = await client.start(workflows.get(workflow)!, undefined, { runId })
        await handle.result()
      },
      settings: async () => ({ durability, concurrency: String(concurrency) }),
      close: () => client.close(),
    }
  }

const modes = ["step", "barrier"] as const
const classes: ReadonlyArray<DurabilityClass> = ["memory", "sqlite full", "sqlite normal", "postgres"]
const packages = {
  memory: ["@cairn/core"],
  "sqlite full": ["@cairn/core", "@cairn/sqlite"],
  "sqlite normal": ["@cairn/core", "@cairn/sqlite"],
  postgres: ["@cairn/core", "@cairn/postgres"],
}

export const subjects: ReadonlyArray<Subject> = classes.flatMap((of) =>
  modes.map((mode): Subject => ({
    name: `Cairn, ${of}, ${mode}`,
    engine: "cairn",
    class: of,
    mode: mode === "step" ? "step" : "behind",
    packages: packages[of],
    leaseMs,
    ...(of === "sqlite full" && {
      note: "The store sets `synchronous = full` on every open and refuses to open a file that does not read it back.",
    }),
    open: open(stores[of], mode),
  })),
)
