/** The codec of what a node leaves behind for later steps, whatever its kind. */
import * as Schema from "effect/Schema"
import type { ChildNode, ControlNode, ReviewNode, SignalNode, WorkNode } from "../../dsl/Definition.js"
import { outputCodec } from "../../dsl/internal/outputCodec.js"
import { codecOf, outcomeCodec, type Codec } from "../../model/Codec.js"
import { childCodec } from "./childResult.js"
import { reviewCodec } from "./reviewResult.js"

const codecs = new WeakMap<WorkNode | ControlNode, Codec<unknown>>()

const timedOut = codecOf(Schema.Literal("timeout"))

export const signalCodec = ({ onTimeout, schema }: SignalNode): Codec<unknown> =>
  onTimeout === "continue" ? outcomeCodec(codecOf(schema), timedOut) : codecOf(schema)

const make = (node: WorkNode | ControlNode): Codec<unknown> => {
  switch (node.kind) {
    case "step":
    case "perform":
      return outputCodec(node)
    case "loop":
      return codecOf(node.state)
    case "signal":
      return signalCodec(node)
    case "review":
      return reviewCodec(node satisfies ReviewNode)
    case "child":
      return childCodec(node satisfies ChildNode)
    default:
      return codecOf(Schema.Unknown)
  }
}

export const resultCodec = (node: WorkNode | ControlNode): Codec<unknown> => {
  const known = codecs.get(node) ?? make(node)
  codecs.set(node, known)
  return known
}
