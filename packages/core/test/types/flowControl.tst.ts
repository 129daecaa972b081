/** Limits, priorities and schedules know the input of their workflow. */
import { Schema } from "effect"
import { describe, expect, test } from "tstyche"
import { Cairn, Workflow } from "../../src/index.js"

const input = Schema.Struct({ tenant: Schema.String, at: Schema.Date })

describe("Workflow.make", () => {
  test("gives key and priority the input as the schema decodes it", () => {
    Workflow.make("sync", {
      version: 1,
      input,
      limits: {
        concurrency: 3,
        perKey: {
          key: (context) => {
            expect(context).type.toBe<{ readonly input: { readonly tenant: string; readonly at: Date } }>()
            return context.input.tenant
          },
          concurrency: 1,
        },
        rate: { count: 5, per: "1 minute", perKey: true },
      },
      priority: ({ input }) => {
        expect(input.at).type.toBe<Date>()
        return 1
      },
    })
  })

  test("refuses a key that is no text, and a rate without its time", () => {
    expect(
      Workflow.make("sync", { version: 1, input, limits: { perKey: { key: ({ input }) => input.at } } }),
    ).type.toRaiseError("Type 'Date' is not assignable to type 'string'")
    expect(Workflow.make("sync", { version: 1, input, limits: { rate: { count: 1 } } })).type.toRaiseError(
      "Property 'per' is missing",
    )
  })
})

describe("Cairn.schedule", () => {
  const sync = Workflow.make("sync", { version: 1, input }).compile()
  const times = { id: "nightly", cron: "30 2 * * *", timeZone: "Europe/Berlin" }

  test("takes the input of its workflow, and no function", () => {
    expect(Cairn.schedule).type.toBeCallableWith(sync, { ...times, input: { tenant: "acme", at: new Date(0) } })
    expect(Cairn.schedule).type.not.toBeCallableWith(sync, { ...times, input: { tenant: "acme" } })
    expect(Cairn.schedule).type.not.toBeCallableWith(sync, { ...times, input: () => ({ tenant: "", at: new Date(0) }) })
    expect(Cairn.schedule).type.not.toBeCallableWith(sync, {
      ...times,
      input: { tenant: "", at: new Date(0) },
      overlap: "queue",
    })
  })
})
