/** Generated workflows of every combinator, each with what it must come to: the promises of control flow, as properties. */
import type { AnyWorkflow } from "@cairn/core"
import * as FastCheck from "effect/FastCheck"
import type { Layer } from "effect/Layer"
import { build, reader, simulate, type BookOf, type Payload } from "./internal/generated/build.js"
import { modelOf, type Expected, type Given, type Modelled } from "./internal/generated/model.js"
import { named, pieces, type Named, type Piece } from "./internal/generated/pieces.js"
import { guarantees } from "./internal/guarantee.js"
import type { EndedRun, ExploredRun, Invariant } from "./internal/invariant.js"
import type { Says } from "./internal/correspondents.js"
import type { Answer, KeyRecord } from "./internal/provider.js"

/**
 * What is generated.
 *
 * *Shape.* `depth`: how deep combinators stand in each other (3). `maxPieces`: how many nodes stand one after the other at the
 * outermost (4). `clock`: `real` for stores with a clock of their own. `book`: what transaction steps do; without it there are
 * none.
 *
 * @category options
 * @since 0.1.0
 */
export interface ControlWorkflowsOptions {
  readonly depth?: number
  readonly maxPieces?: number
  readonly clock?: "virtual" | "real"
  readonly book?: BookOf
}

/**
 * A generated workflow with all that `explore` has to be given for it.
 *
 * *Shape.* `options` are those of `explore`: its input, its provider's answers, what is said to it, and a check that holds what
 * came of it against a plain interpretation of the same pieces. `pieces`: what it was made of, for people who look at a
 * counterexample.
 *
 * @category models
 * @since 0.1.0
 */
export interface GeneratedControl {
  readonly workflow: AnyWorkflow
  readonly options: {
    readonly input: (run: ExploredRun) => Given
    readonly simulate: Answer
    readonly services: Layer<any>
    readonly says: Says
    readonly sameEnd: boolean
    readonly invariant: Invariant
  }
  readonly pieces: ReadonlyArray<Piece>
}

const everyNamed = (nodes: ReadonlyArray<Named>): ReadonlyArray<Named> =>
  nodes.flatMap((node) => [node, ...node.bodies.flatMap(everyNamed)])

const saysOf = (nodes: ReadonlyArray<Named>): Says => {
  const byName = new Map(everyNamed(nodes).map((node) => [node.name, node.piece]))
  return ({ name }) => {
    const piece = byName.get(name)
    return { say: piece?.kind === "signal" || piece?.kind === "review" ? piece.say : "nothing" }
  }
}

const outcomeProblems = ({ outcome }: Modelled, { run }: EndedRun): ReadonlyArray<string> => {
  if (run.status === "canceled") return []
  if (run.status !== outcome.status) {
    const why = run.failure === null ? "" : ` at '${run.failure.step}': ${run.failure.problem}`
    return [`it is '${run.status}'${why}, and '${outcome.status}' by the model`]
  }
  if (outcome.status === "completed") {
    const expected = JSON.stringify(outcome.output)
    return run.output === expected ? [] : [`its output is ${run.output}, and ${expected} by the model`]
  }
  const step = run.failure?.step ?? ""
  return outcome.at.has(step) ? [] : [`it failed at '${step}', and at ${[...outcome.at].join(" or ")} by the model`]
}

const effectProblems = (
  of: string,
  keys: ReadonlyArray<KeyRecord>,
  expected: Expected,
  { run, schedule }: EndedRun,
  sideBySide: boolean,
): ReadonlyArray<string> => {
  const effects = keys.reduce((sum, key) => sum + key.effects, 0)
  const most = expected.effects * guarantees[expected.policy].mostEffects(schedule, sideBySide)
  const least = expected.sure && run.status !== "canceled" ? expected.effects : 0
  const payloads = new Set(keys.flatMap((key) => [...key.payloads]))
  return [
    ...(effects > most || effects < least
      ? [`'${of}' had ${effects} effects, from ${least} to ${most} by the model`]
      : []),
    ...[...payloads]
      .filter((payload) => payload !== expected.payload)
      .map((payload) => `'${of}' was sent with ${payload}, and with ${expected.payload} by the model`),
  ]
}

const judgeBy = (model: Modelled, run: EndedRun, sideBySide: boolean): ReadonlyArray<string> => {
  const sent = new Map<string, Array<KeyRecord>>()
  for (const key of run.provider.keys.values()) {
    if (key.operation === "provider.undo") continue
    const { of } = JSON.parse([...key.payloads][0]!) as Payload
    sent.set(of, [...(sent.get(of) ?? []), key])
  }
  const unknown = [...sent.keys()]
    .filter((of) => !model.acts.has(of))
    .map((of) => `'${of}' was sent, and not by the model`)
  const over = ["completed", "failed", "canceled"].includes(run.status)
  if (!over) return unknown
  const acts = [...model.acts].flatMap(([of, expected]) =>
    effectProblems(of, sent.get(of) ?? [], expected, run, sideBySide),
  )
  return [...unknown, ...acts, ...outcomeProblems(model, run)]
}

const generatedOf = (
  amount: number,
  all: ReadonlyArray<Piece>,
  { book, clock = "virtual" }: ControlWorkflowsOptions,
): GeneratedControl => {
  const nodes = named(all)
  const given = (run: string): Given => ({ amount, at: "", run })
  const model = modelOf(nodes, given("any"))
  const sideBySide = everyNamed(nodes).some(({ piece }) => piece.kind === "parallel" || piece.kind === "forEach")
  return {
    workflow: build(nodes, clock, book),
    options: {
      ...{ input: ({ namespace }) => given(namespace), simulate, services: reader as Layer<any> },
      ...{ says: saysOf(nodes), sameEnd: model.isExact, invariant: (run) => judgeBy(model, run, sideBySide) },
    },
    pieces: all,
    ...{ [FastCheck.toStringMethod]: () => JSON.stringify({ amount, pieces: all }) },
  }
}

/**
 * Workflows of all combinators, one in the other, with operations of every policy, people and programs that speak to them, and
 * children; each with a model that says what must come of it.
 *
 * @category arbitraries
 * @since 0.1.0
 */
export const controlWorkflows = (options: ControlWorkflowsOptions = {}): FastCheck.Arbitrary<GeneratedControl> => {
  const { clock = "virtual", depth = 3, maxPieces = 4 } = options
  const made = pieces({ clock, depth, maxPieces, transactions: options.book !== undefined })
  return FastCheck.tuple(FastCheck.integer({ min: 0, max: 9 }), made).map(([amount, all]) =>
    generatedOf(amount, all, options),
  )
}
