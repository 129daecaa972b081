/** The codec of what a step leaves behind for later steps. */
import { codecOf, nullableCodec, outcomeCodec, type Codec } from "../../model/Codec.js"
import type { WorkNode } from "../Definition.js"

const codecs = new WeakMap<WorkNode, Codec<unknown>>()

const make = (node: WorkNode): Codec<unknown> => {
  if (node.kind === "step") return codecOf(node.output)
  const { success, failure } = node.operation.codecs
  const plain: Codec<unknown> = node.settle ? outcomeCodec(success, failure) : success
  return node.optional ? nullableCodec(plain) : plain
}

export const outputCodec = (node: WorkNode): Codec<unknown> => {
  const known = codecs.get(node) ?? make(node)
  codecs.set(node, known)
  return known
}
