/**
 * What steers a run is computed from what is committed, and recorded before it is obeyed (X1): the case of a branch, the turns
 * of a loop, the items of a `forEach`. Nothing of it is computed again after a restart.
 */
import * as Effect from "effect/Effect"
import type { ForEachNode, LoopNode } from "../../dsl/Definition.js"
import { codecOf } from "../../model/Codec.js"
import { InvalidValue } from "../../model/Errors.js"
import { LoopLimitReached } from "../../model/Failures.js"
import { escapeSegment } from "../../model/Ids.js"
import { toJsonText } from "../../model/internal/json.js"
import { isInstance, shownValue } from "../../model/internal/untrusted.js"
import type { PlanControl } from "../../model/Plan.js"
import { tried } from "./asynchrony.js"
import { endEarly, failWith, looked, parkUnreadable, Unreadable } from "./completion.js"
import type { Steer } from "./decide.js"
import { controlRecord, fail, failureRecord, itemEnd } from "./failing.js"
import { accepted, committed, type Failure, type Turn } from "./leave.js"
import { instancePath, itemsPath, listScope, prefixOf, turnPrefix } from "./paths.js"
import type { Parts, RunSession } from "./session.js"
import { asEffect } from "./soon.js"

type StepPart = NonNullable<Parts["steps"]>[number]

/** Commits what steers: nothing outside follows from it, so that the run goes on at once where it may run ahead. */
export const steered = (session: RunSession, path: string, parts: Parts): Effect.Effect<null, Failure> =>
  Effect.suspend(() => {
    const at = { path, attempt: 0 }
    const runsAhead = session.env.durability === "barrier"
    return Effect.as(asEffect((runsAhead ? accepted : committed)(session, at, parts)), null)
  })

const record = (session: RunSession, { path }: Steer, step: StepPart): Effect.Effect<null, Failure> =>
  steered(session, path, { run: session.running(path), steps: [step] })

const wrong = (place: string, field: string, problem: string): InvalidValue =>
  new InvalidValue({ place, field, reason: "SchemaMismatch", problem })

/** A tag may be a boolean or a number: the case is named like it. */
const caseOf = (tag: unknown): unknown => (typeof tag === "boolean" || typeof tag === "number" ? String(tag) : tag)

const chosen = (session: RunSession, steer: Steer): Effect.Effect<string, unknown> => {
  const node = session.control(steer.path)
  const prefix = prefixOf(steer.path)
  const label =
    node.kind === "match"
      ? looked(
          session,
          prefix,
          (context) => caseOf((node.value(context) as Record<string, unknown> | null)?.[node.tag]),
          "results",
        )
      : node.kind === "branch"
        ? looked(session, prefix, node.on)
        : Effect.die(new TypeError(`'${node.name}' has no cases`))
  return Effect.flatMap(label, (label) => {
    const { cases } = node as Extract<typeof node, { kind: "branch" }>
    if (typeof label === "string" && Object.hasOwn(cases, label)) return Effect.succeed(label)
    const known = Object.keys(cases).map(shownValue).join(", ")
    return Effect.fail(wrong(`case of '${node.name}'`, "", `expected one of ${known}, got ${shownValue(label)}`))
  })
}

const gatedState = (session: RunSession, node: LoopNode, given: unknown) =>
  codecOf(node.state).gate(given, { place: `state of loop '${node.name}'`, maxLength: session.env.maxValueLength })

const turnRecord = (path: string, turn: number, state: string | null): StepPart =>
  controlRecord(instancePath(path, turn), "turn", state, listScope(path))

const initial = (session: RunSession, { path }: Steer) =>
  Effect.gen(function* () {
    const node = session.control(path) as LoopNode
    const state = yield* gatedState(session, node, yield* looked(session, prefixOf(path), node.initial))
    return turnRecord(path, 0, state.text)
  })

const next = (session: RunSession, steer: Steer) =>
  Effect.gen(function* () {
    const { of, path } = steer
    const { maxIterations, onLimit } = steer.node as Extract<PlanControl, { kind: "loop" }>
    const node = session.control(path) as LoopNode
    const { done, state: given } = (yield* looked(session, turnPrefix(path, of), (context) => {
      const said = node.next(context) as { done?: unknown; state?: unknown } | null
      return { done: said?.done, state: said?.state }
    })) as { done: unknown; state: unknown }
    if (typeof done !== "boolean") {
      return yield* wrong(`next of loop '${node.name}'`, ".done", `expected a boolean, got ${shownValue(done)}`)
    }
    const state = yield* gatedState(session, node, given)
    const turn = Number(of) + 1
    if (done || (turn >= maxIterations && onLimit === "stop")) return controlRecord(path, "loop", state.text)
    if (turn >= maxIterations) return yield* new LoopLimitReached({ step: path, maxIterations })
    return turnRecord(path, turn, state.text)
  })

/** The items as they are stored: each with its escaped key. */
const itemsText = (
  session: RunSession,
  node: ForEachNode,
  given: ReadonlyArray<unknown> | null,
): Effect.Effect<string, unknown> =>
  Effect.gen(function* () {
    const place = `items of '${node.name}'`
    if (given === null) return yield* wrong(place, "", "expected an array")
    const seen = new Set<string>()
    const texts: Array<string> = []
    for (const [index, item] of given.entries()) {
      const key = yield* tried(() => node.key(item))
      if (typeof key !== "string" || key === "") {
        return yield* wrong(place, `[${index}]`, `its key must be a text that is not empty, got ${shownValue(key)}`)
      }
      if (seen.has(key)) return yield* wrong(place, `[${index}]`, `two items have the key '${key}'`)
      seen.add(key)
      const text = yield* itemText(session, node, item, `${place} ('${key}')`)
      texts.push(`{"key":${JSON.stringify(escapeSegment(key))}${text === null ? "" : `,"value":${text}`}}`)
    }
    const text = `[${texts.join(",")}]`
    const most = session.env.maxValueLength
    if (text.length <= most) return text
    const problem = `they take ${text.length} characters as JSON and at most ${most} are allowed; hand on references`
    return yield* new InvalidValue({ place, field: "", reason: "TooLarge", problem })
  })

const itemText = (
  { env: { maxValueLength: maxLength } }: RunSession,
  node: ForEachNode,
  item: unknown,
  place: string,
): Effect.Effect<string | null, InvalidValue> => {
  if (node.item !== null) return Effect.map(codecOf(node.item).gate(item, { place, maxLength }), ({ text }) => text)
  const written = toJsonText(item)
  return "text" in written ? Effect.succeed(written.text) : Effect.fail(new InvalidValue({ place, ...written }))
}

const items = (session: RunSession, { path }: Steer) =>
  Effect.gen(function* () {
    const node = session.control(path) as ForEachNode
    // A copy: a proxy of an array may throw at its next look.
    const given = yield* looked(session, prefixOf(path), (context) => {
      const items: unknown = node.items(context)
      return Array.isArray(items) ? Array.from(items as ReadonlyArray<unknown>) : null
    })
    const text = yield* itemsText(session, node, given as ReadonlyArray<unknown> | null)
    return controlRecord(itemsPath(path), "items", text, itemsPath(path))
  })

const allEnded = (session: RunSession, { path }: Steer): StepPart => {
  const fan = session.fans.get(path)!
  return controlRecord(path, "forEach", JSON.stringify({ total: fan.items.length, failed: fan.failed }))
}

const computed = (session: RunSession, steer: Steer): Effect.Effect<StepPart, unknown> => {
  switch (steer.what) {
    case "case":
      return Effect.map(chosen(session, steer), (label) =>
        controlRecord(steer.path, steer.node.kind, JSON.stringify({ case: label })),
      )
    case "initial":
      return initial(session, steer)
    case "next":
      return next(session, steer)
    case "items":
      return items(session, steer)
    default:
      return Effect.sync(() => allEnded(session, steer))
  }
}

/** What a function that steers has thrown: the run fails by it, or is parked where this code cannot read what it looked at. */
export const refused = (session: RunSession, path: string, error: unknown): Effect.Effect<Turn, Failure> =>
  isInstance(error, Unreadable)
    ? parkUnreadable(session, path, error)
    : Effect.flatMap(failureRecord(session, path, error), (failure) => fail(session, path, failure))

/** Computes what steers, and records it. */
export const obeySteer = (session: RunSession, work: Steer): Effect.Effect<Turn, Failure> => {
  if (work.what === "fail" || work.what === "end") {
    const node = session.control(work.path)
    const given = node.kind === "fail" ? node.failure : node.kind === "end" ? node.output : () => undefined
    return Effect.matchEffect(looked(session, prefixOf(work.path), given), {
      onFailure: (error) => refused(session, work.path, error),
      onSuccess: (value) => (work.what === "fail" ? failWith : endEarly)(session, work.path, value),
    })
  }
  if (work.what === "item") {
    const end = itemEnd(session, work.path, instancePath(work.path, work.of))
    return steered(session, work.path, { run: session.running(work.path), ...end })
  }
  return Effect.matchEffect(computed(session, work), {
    onFailure: (error) => refused(session, work.path, error),
    onSuccess: (step) => record(session, work, step),
  })
}
