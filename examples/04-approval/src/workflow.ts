/** An expense is paid if somebody approves it in time; then, and only then. */
import { OnUnknown, Operation, Workflow } from "@cairn/core"
import { Schema, type Duration } from "effect"

/** A worker that is killed keeps its runs for this long. Short, so that the demo is. */
export const leaseMs = 1_000

export const Expense = Schema.Struct({ person: Schema.String, what: Schema.String, cents: Schema.Int })

export const PayOut = Operation.make("bank.payOut", {
  payload: Schema.Struct({ to: Schema.String, cents: Schema.Int, note: Schema.String }),
  success: Schema.Struct({ transfer: Schema.String }),
  // The bank honours keys: the same key is the same transfer.
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
  timeout: 2_000,
})

/** Who may decide, and for how long. */
interface Approval {
  readonly deadline: Duration.DurationInput
  readonly escalate: ReadonlyArray<{ readonly after: Duration.DurationInput; readonly who: string }>
}

const paidIfApproved = (name: string, { deadline, escalate }: Approval) =>
  Workflow.make(name, { version: 1, input: Expense })
    .review("approve", {
      // What is shown is stored when the review is asked for: the decision is about that, and nothing else.
      show: ({ input }) => input,
      decision: Schema.Struct({ note: Schema.String }),
      who: "team lead",
      escalate,
      deadline,
      // Neither has a default: one that is forgotten would be an approval that nobody gave.
      onReject: "continue",
      onTimeout: "reject",
    })
    .match("way", "outcome", ({ results }) => results.approve, {
      approved: (flow) =>
        flow.perform("pay", PayOut, {
          payload: ({ input, value }) => ({ to: input.person, cents: input.cents, note: value.decision.note }),
          retry: { times: 5 },
        }),
      rejected: (flow) => flow,
      expired: (flow) => flow,
    })
    .output(Schema.String, ({ results: { approve, way } }) => {
      if (way.case === "approved") return `paid (${way.results.pay.transfer})`
      if (approve.outcome === "rejected") return `rejected by ${approve.by}: ${approve.reason ?? "no reason was given"}`
      return "expired: nobody has decided"
    })
    .compile()

export const expense = paidIfApproved("expense", {
  deadline: "2 days",
  escalate: [{ after: "1 day", who: "head of department" }],
})

/** The same in seconds, for what is to expire while the demo runs. */
export const pettyCash = paidIfApproved("petty-cash", {
  deadline: "6 seconds",
  escalate: [{ after: "2 seconds", who: "head of department" }],
})
