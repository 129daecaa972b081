/**
 * What a generated workflow comes to where nothing ever breaks: a plain interpretation of its pieces, in memory and in order. It
 * knows nothing of stores, workers or plans.
 */
import { escapeSegment, fingerprint } from "@cairn/core"
import { labels, type Fails, type Mood, type Named, type Policy } from "./pieces.js"

/** What is handed to each run. `at` is where its parent stands. */
export interface Given {
  readonly amount: number
  readonly at: string
  readonly run: string
}

/** What may be done under the name of one step, over all its keys. */
export interface Expected {
  readonly policy: Policy
  readonly effects: 0 | 1
  /** A failure beside it may come first. */
  sure: boolean
  readonly payload: string
}

export type Outcome =
  | { readonly status: "completed"; readonly output: string }
  /** `at`: where it may have failed; several places where several things were under way. */
  | { readonly status: "failed"; readonly at: ReadonlySet<string> }

export interface Modelled {
  readonly outcome: Outcome
  readonly acts: ReadonlyMap<string, Expected>
  /** Transaction steps that are done. */
  readonly books: ReadonlySet<string>
  /** Nothing depends on what comes first. */
  readonly isExact: boolean
}

/** A result as it is seen: `deep` by a step that reads the items of a list, too. */
interface Value {
  readonly flat: unknown
  readonly deep: unknown
}

type Seen = ReadonlyArray<readonly [name: string, Value]>

interface Place {
  /** Where its run stands in those around it, and the turns and keys around it. */
  readonly given: Given
  readonly instances: ReadonlyArray<string>
  /** Of the innermost turn or item. */
  readonly number: number
  readonly scope: unknown
}

/** How a list of pieces has ended. */
type Came =
  | { readonly how: "done"; readonly values: Seen }
  | { readonly how: "failed"; readonly at: ReadonlySet<string> }
  | { readonly how: "ended"; readonly output: string }

export const digest = (value: unknown): string => fingerprint(JSON.stringify(value)).slice(0, 8)

export const failsAt = (fails: Fails, number: number): boolean =>
  fails === "always" || (fails === "odd" && number % 2 === 1)

/** What is settled is not tried again. */
export const moodAt = (
  of: { readonly mood: Mood; readonly fails: Fails; readonly form: string },
  number: number,
): Mood => (failsAt(of.fails, number) || (of.form === "settled" && of.mood === "declinesFirst") ? "declines" : of.mood)

/** The path of a node in a run. */
const pathAt = (template: string, { instances }: Place): string => {
  let next = 0
  return template.replaceAll("[]", () => `[${instances[next++]}]`)
}

export const payloadOf = (of: string, amount: number, mood: Mood, seen: unknown) => ({
  // In the order of its schema: payloads are compared as text.
  ...{ of, amount, seen: digest(seen), mood },
})

export const receiptOf = (of: string): string => `receipt of ${of}`

const same = (value: unknown): Value => ({ flat: value, deep: value })
const flatOf = (seen: Seen): unknown => seen.map(([name, { flat }]) => [name, flat])
const deepOf = (seen: Seen): unknown => seen.map(([name, { deep }]) => [name, deep])

/** What a step without effects gives: all that it sees, in short. */
export const stepValue = (at: string, scope: unknown, seen: unknown): string => `${at}=${digest([scope, seen])}`

class Model {
  readonly acts = new Map<string, Expected>()
  readonly books = new Set<string>()
  isExact = true

  all(nodes: ReadonlyArray<Named>, before: Seen, place: Place): Came {
    const values: Array<Seen[number]> = []
    for (const node of nodes) {
      const came = this.one(node, [...before, ...values], place)
      if (came.how !== "done") return came
      values.push(...came.values)
    }
    return { how: "done", values }
  }

  private one(node: Named, seen: Seen, place: Place): Came {
    const { name, piece } = node
    const path = pathAt(node.path, place)
    const of = `${place.given.at}${path}`
    const gives = (value: Value): Came => ({ how: "done", values: [[name, value]] })
    const fails: Came = { how: "failed", at: new Set([path]) }
    switch (piece.kind) {
      case "step":
        return gives(same(stepValue(of, place.scope, deepOf(seen))))
      case "read":
        return gives(same(`read ${of}`))
      case "transaction":
        this.books.add(of)
        return gives(same(null))
      case "boom":
        return failsAt(piece.fails, place.number) ? fails : gives(same(`no boom at ${of}`))
      case "act": {
        const mood = moodAt(piece, place.number)
        const declined = mood === "declines"
        const payload = JSON.stringify(payloadOf(of, place.given.amount, mood, flatOf(seen)))
        this.acts.set(of, { policy: piece.policy, effects: declined ? 0 : 1, sure: true, payload })
        if (piece.form === "settled") return gives(same(declined ? ["no", "declined"] : ["ok", receiptOf(of)]))
        return declined ? fails : gives(same(receiptOf(of)))
      }
      case "sleep":
        return { how: "done", values: [] }
      case "signal":
        if (piece.say === "late") this.isExact = false
        if (piece.say === "nothing") return piece.timeout === "fail" ? fails : gives(same("timeout"))
        return gives(same(piece.say === "late" ? "?" : "got"))
      case "review":
        return this.review(piece, gives, fails)
      case "branch":
      case "match": {
        const scope = piece.kind === "match" ? { around: place.scope, value: piece.taken } : place.scope
        const came = this.all(node.bodies[piece.taken]!, seen, { ...place, scope })
        return came.how === "done" ? gives(same([labels[piece.taken], flatOf(came.values)])) : came
      }
      case "exit":
        if (!piece.taken) return gives(same(["on", []]))
        return piece.how === "end"
          ? { how: "ended", output: `ended at ${of}` }
          : { how: "failed", at: new Set([`${path}:out/${name}out`]) }
      case "loop":
        return this.loop(node, piece, seen, place, gives, fails)
      case "forEach":
        return this.each(node, piece, seen, place, gives)
      case "parallel": {
        const arms = this.sideBySide(node.bodies.map((body) => () => this.all(body, seen, place)))
        if ("how" in arms) return arms
        return gives(same(arms.map((values, index) => [labels[index], flatOf(values)])))
      }
      case "child": {
        const given = { ...place.given, at: `${of}>` }
        const came = this.all(node.bodies[0]!, [], { given, instances: [], number: 0, scope: null })
        if (came.how === "failed") return piece.settle ? gives(same(["no"])) : fails
        const output = came.how === "ended" ? came.output : digest(flatOf(came.values))
        return gives(same(piece.settle ? ["ok", output] : output))
      }
    }
  }

  private review(
    { onReject, onTimeout, say }: Extract<Named["piece"], { kind: "review" }>,
    gives: (value: Value) => Came,
    fails: Came,
  ): Came {
    if (say === "late") {
      this.isExact = false
      return gives(same("?"))
    }
    if (say === "yes") return gives(same("approved"))
    if (say === "no") return onReject === "fail" ? fails : gives(same("rejected"))
    return onTimeout === "fail" || onReject === "fail" ? fails : gives(same("expired"))
  }

  private loop(
    node: Named,
    piece: Extract<Named["piece"], { kind: "loop" }>,
    seen: Seen,
    place: Place,
    gives: (value: Value) => Came,
    fails: Came,
  ): Came {
    let state = place.given.amount
    for (let turn = 0; turn < piece.turns; turn++) {
      const scope = { around: place.scope, turn, state }
      const instances = [...place.instances, String(turn)]
      const came = this.all(node.bodies[0]!, seen, { ...place, instances, number: turn, scope })
      if (came.how !== "done") return came
      state = nextState(state, flatOf(came.values))
    }
    return piece.limit === "fail" ? fails : gives(same(state))
  }

  private each(
    node: Named,
    piece: Extract<Named["piece"], { kind: "forEach" }>,
    seen: Seen,
    place: Place,
    gives: (value: Value) => Came,
  ): Came {
    const keys = Array.from({ length: piece.items }, (_, number) => keyOf(number))
    const item = (key: string, number: number) => (): Came => {
      const scope = { around: place.scope, key, item: number }
      return this.all(node.bodies[0]!, seen, {
        ...place,
        instances: [...place.instances, escapeSegment(key)],
        number,
        scope,
      })
    }
    if (!piece.collect) {
      const items = this.sideBySide(keys.map(item))
      if ("how" in items) return items
      const deep = [keys.length, 0, items.map((values, index) => [keys[index], true, flatOf(values)])]
      return gives({ flat: [keys.length, 0], deep })
    }
    const ends = keys.map((key, number) => [key, item(key, number)()] as const)
    const failed = ends.filter(([, came]) => came.how === "failed").length
    const list = ends.map(([key, came]) => (came.how === "done" ? [key, true, flatOf(came.values)] : [key, false]))
    return gives({ flat: [keys.length, failed], deep: [keys.length, failed, list] })
  }

  /** What goes on side by side: where one of them fails, nobody knows how far the others had come. */
  private sideBySide(all: ReadonlyArray<() => Came>): ReadonlyArray<Seen> | Came {
    const ran = all.map((run) => {
      const from = new Set(this.acts.keys())
      const came = run()
      return { came, acts: [...this.acts].flatMap(([of, act]) => (from.has(of) ? [] : [act])) }
    })
    const failed = ran.filter(({ came }) => came.how === "failed")
    if (failed.length === 0) return ran.map(({ came }) => (came as Extract<Came, { how: "done" }>).values)
    const uncertain = failed.length > 1 ? ran : ran.filter(({ came }) => came.how !== "failed")
    for (const { acts } of uncertain) for (const act of acts) act.sure = false
    if (all.length > 1) this.isExact = false
    return {
      how: "failed",
      at: new Set(failed.flatMap(({ came }) => [...(came as Extract<Came, { how: "failed" }>).at])),
    }
  }
}

export const keyOf = (number: number): string => `k/${number}`

export const nextState = (state: number, seen: unknown): number =>
  (state * 7 + Number.parseInt(digest(seen), 16)) % 1_009

export const modelOf = (nodes: ReadonlyArray<Named>, given: Given): Modelled => {
  const model = new Model()
  const came = model.all(nodes, [], { given, instances: [], number: 0, scope: null })
  const outcome: Outcome =
    came.how === "failed"
      ? { status: "failed", at: came.at }
      : { status: "completed", output: came.how === "ended" ? came.output : JSON.stringify(flatOf(came.values)) }
  return { outcome, acts: model.acts, books: model.books, isExact: model.isExact }
}
