/** A provider that knows no keys, so that each policy shows what it is worth: every call is one more effect. */
import { Effect, Schema } from "effect"
import { OnUnknown, Operation, type Checked, type HandlerContext } from "../../../src/index.js"

const parts = {
  payload: Schema.Struct({ to: Schema.String }),
  success: Schema.Struct({ id: Schema.String, at: Schema.Date }),
}

export const Checking = Operation.make("mail.checking", {
  ...parts,
  onUnknown: OnUnknown.checkFirst({ maxSends: 4 }),
})
export const Recording = Operation.make("mail.recording", { ...parts, onUnknown: OnUnknown.recordFirst() })
export const Reviewing = Operation.make("mail.reviewing", { ...parts, onUnknown: OnUnknown.review() })

export const letter = { to: "ada" }

export interface Sent {
  readonly id: string
  readonly at: Date
}

/** One outside world: what it was sent, and what it was asked. */
export class Outbox {
  readonly sent: Array<{ readonly key: string; readonly to: string }> = []
  readonly asked: Array<{ readonly key: string; readonly to: string }> = []

  send(payload: { readonly to: string }, { idempotencyKey }: HandlerContext): Sent {
    this.sent.push({ key: idempotencyKey, to: payload.to })
    return { id: `m_${this.sent.length}`, at: new Date(this.sent.length) }
  }

  find(payload: { readonly to: string }, { idempotencyKey }: HandlerContext): Checked<Sent> {
    this.asked.push({ key: idempotencyKey, to: payload.to })
    const found = this.sent.findIndex(({ key }) => key === idempotencyKey)
    return found === -1
      ? { happened: false }
      : { happened: true, result: { id: `m_${found + 1}`, at: new Date(found + 1) } }
  }

  /** The three operations; `answer` is what becomes of an effect that was had. */
  layerOf(
    operation: typeof Checking | typeof Recording | typeof Reviewing,
    answer: (sent: Sent, context: HandlerContext, count: number) => Effect.Effect<Sent, any> = (sent) =>
      Effect.succeed(sent),
  ) {
    const handler = (payload: { readonly to: string }, context: HandlerContext) =>
      Effect.suspend(() => {
        const sent = this.send(payload, context)
        return answer(sent, context, this.sent.length)
      })
    const check = (payload: { readonly to: string }, context: HandlerContext) =>
      Effect.sync(() => this.find(payload, context))
    return (operation as typeof Checking).toLayer(handler, { check })
  }
}
