/** The codec of what a node leaves behind for later steps. */
import { codecOf, nullableCodec, outcomeCodec, type Codec } from "../../model/Codec.js"
import type { Node } from "../Definition.js"

const codecs = new WeakMap<Node, Codec<unknown>>()

const make = (node: Node): Codec<unknown> => {
  if (node.kind === "step") return codecOf(node.output)
  const { success, failure } = node.operation.codecs
  const plain: Codec<unknown> = node.settle ? outcomeCodec(success, failure) : success
  return node.optional ? nullableCodec(plain) : plain
}

export const outputCodec = (node: Node): Codec<unknown> => {
  const known = codecs.get(node) ?? make(node)
  codecs.set(node, known)
  return known
}
