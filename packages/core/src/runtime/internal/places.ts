/**
 * What is seen from where a node stands: the results of all that is committed before it, in its own scope and in those around
 * it, and what its scopes add (`state`, `turn`, `item`, `key`, `value`, `outer`).
 *
 * Everything is decoded when it is looked at, afresh for each attempt, from what is committed: on the first run as on a resume
 * (X3).
 */
import * as Either from "effect/Either"
import type { ForEachNode, LoopNode, MatchNode } from "../../dsl/Definition.js"
import { codecOf, type Codec } from "../../model/Codec.js"
import { InvalidValue } from "../../model/Errors.js"
import { escapeSegment, unescapeSegment } from "../../model/Ids.js"
import type { StepRecord } from "../../model/Records.js"
import { toJsonText } from "../../model/internal/json.js"
import { lookContext, type ContextParts, type OnUnreadable, type Source } from "./context.js"
import { emptyFrame, type Frame } from "./frames.js"
import { itemsReader } from "./itemsReader.js"
import { joinedMembers, readAt } from "./lookedAt.js"
import { casePrefix, instanceOf, instancePath, prefixOf, templateOf, turnPrefix } from "./paths.js"
import type { Block, Pair } from "./program.js"
import { resultCodec } from "./resultCodec.js"
import type { RunSession } from "./session.js"

/** Reads stored text; tells where it cannot, and throws. */
export interface Reader {
  readonly read: <A>(codec: Codec<A>, text: string | null, of: string, step: string) => A
  readonly refuse: (step: string, error: InvalidValue) => never
}

/** An instance of a block: where a node of a run stands. */
export class Place {
  /** The place around it; null for the workflow's own. */
  readonly outer: Place | null

  constructor(
    readonly session: RunSession,
    readonly block: Block,
    readonly prefix: string,
    readonly frame: Frame,
    outer?: Place,
  ) {
    this.outer = block.parent === null ? null : (outer ?? session.place(prefixOf(prefix.slice(0, -1))))
  }

  private valueOf(pair: Pair, path: string, read: Reader): (() => unknown) | undefined {
    const { session } = this
    const { node } = pair
    switch (node.kind) {
      case "sleep":
      case "fail":
      case "end":
        return undefined
      case "parallel":
        return () =>
          Object.fromEntries(Object.keys(node.arms).map((label) => [label, this.inner(path, label).results(read)]))
    }
    const record = this.frame.steps.get(path)
    if (record === undefined) return undefined
    switch (node.kind) {
      case "branch":
      case "match":
        return () => {
          const { case: label } = JSON.parse(record.result ?? "null") as { readonly case: string }
          return { case: label, results: this.inner(path, label).results(read) }
        }
      case "forEach":
        return () =>
          itemsReader(session, path, record.result, (key, steps) => this.ended(path, key, steps).results(unheard))
      default:
        return () => read.read(resultCodec(node), record.result, `stored output of step '${node.name}'`, path)
    }
  }

  /** The block of a case or an arm of a node that stands here. */
  private inner(path: string, label: string): Place {
    const prefix = casePrefix(path, escapeSegment(label))
    // Of this very frame: that of an item which is over is nobody else's.
    return new Place(this.session, this.session.block(templateOf(prefix)), prefix, this.frame, this)
  }

  /** An item that is over, with what it has left. */
  private ended(path: string, key: string, steps: ReadonlyArray<StepRecord>): Place {
    const prefix = turnPrefix(path, key)
    const frame = emptyFrame(instancePath(path, key), true)
    for (const step of steps) frame.steps.set(step.path, step)
    return new Place(this.session, this.session.block(templateOf(prefix)), prefix, frame)
  }

  /** What a node of this very place has left, by its name. */
  own(name: string, read: Reader): (() => unknown) | undefined {
    const named = this.block.named.get(name)
    return named === undefined ? undefined : this.valueOf(named.pair, this.prefix + named.segment, read)
  }

  /** The results of this very place, and of none around it, as one object. */
  results(read: Reader): Record<string, unknown> {
    const own = [...this.block.named.keys()].flatMap((name) => {
      const value = this.own(name, read)
      return value === undefined ? [] : [[name, value] as const]
    })
    return defineLazily({}, Object.fromEntries(own))
  }

  /** What a node of this place, or of one around it, has left. */
  private seen(name: string, read: Reader): (() => unknown) | undefined {
    return this.own(name, read) ?? this.outer?.seen(name, read)
  }

  private names(read: Reader): ReadonlyArray<string> {
    const own = [...this.block.named.keys()].filter((name) => this.own(name, read) !== undefined)
    return this.outer === null ? own : [...this.outer.names(read), ...own]
  }

  /** What functions that stand here see. */
  source(read: Reader): Source {
    return { get: (name) => this.seen(name, read), names: () => this.names(read) }
  }

  /** Whether no scope of this place adds anything to the context. */
  get isBare(): boolean {
    const { owner } = this.block
    const adds = owner?.kind === "loop" || owner?.kind === "forEach" || owner?.kind === "match"
    return !adds && (this.outer === null || this.outer.isBare)
  }

  /** What the scopes of this place add to the context; null where there are none. */
  extras(read: Reader): object | null {
    const { owner } = this.block
    const around = this.outer?.extras(read) ?? null
    switch (owner?.kind) {
      case "loop":
        return this.turn(owner, around, read)
      case "forEach":
        return this.item(owner, around, read)
      case "match":
        return this.value(owner, around, read)
      default:
        return around
    }
  }

  private turn(loop: LoopNode, outer: object | null, read: Reader): object {
    const { session } = this
    const scope = this.prefix.slice(0, -1)
    const { key } = instanceOf(scope)!
    return defineLazily(
      { turn: Number(key), outer: outer ?? {} },
      {
        state: () =>
          read.read(
            codecOf(loop.state),
            session.turnAt(scope)?.result ?? null,
            `stored state of loop '${loop.name}'`,
            scope,
          ),
      },
    )
  }

  private item(each: ForEachNode, outer: object | null, read: Reader): object {
    const { container, key } = instanceOf(this.prefix.slice(0, -1))!
    const item = this.session.fans.get(container)?.find(key)
    const text = toJsonText(item?.value) as { readonly text: string | null }
    return defineLazily(
      { key: unescapeSegment(key), outer: outer ?? {} },
      {
        item: () =>
          each.item === null
            ? structuredClone(item?.value)
            : read.read(codecOf(each.item), text.text, `stored item of '${each.name}'`, container),
      },
    )
  }

  /** Computed again from what is committed, and only handed on where it still is of the case that was recorded. */
  private value(match: MatchNode, outer: object | null, read: Reader): object {
    const at = this.prefix.slice(0, this.prefix.lastIndexOf(":"))
    const { outer: place, session } = this
    const own = defineLazily(
      {},
      {
        value: () => {
          const value = match.value(
            lookContext({
              input: session.input,
              source: place!.source(read),
              extras: place!.extras(read),
              onUnreadable: read.refuse,
            }),
          ) as Record<string, unknown> | null | undefined
          const found = value?.[match.tag]
          if (casePrefix(at, escapeSegment(String(found))) === this.prefix) return value
          const problem = `it was of another case when it was committed, and is '${String(found)}' now`
          return read.refuse(
            at,
            new InvalidValue({
              place: `value of '${match.name}'`,
              field: `.${match.tag}`,
              reason: "SchemaMismatch",
              problem,
            }),
          )
        },
      },
    )
    return outer === null ? own : joinedMembers(outer, own)
  }
}

const lazy = (compute: () => unknown): (() => unknown) => {
  let known: { readonly value: unknown } | null = null
  return () => (known ??= { value: compute() }).value
}

const defineLazily = <A extends object>(target: A, members: Readonly<Record<string, () => unknown>>): A =>
  readAt(target, Object.fromEntries(Object.entries(members).map(([name, compute]) => [name, lazy(compute)])))

/** What is called where something cannot be read: the act that asked must not commit. */
export const readerOf = (onUnreadable: OnUnreadable): Reader => {
  const refuse = (step: string, error: InvalidValue): never => {
    onUnreadable(step, error)
    throw error
  }
  return {
    refuse,
    read: (codec, text, of, step) => {
      const decoded = codec.decode(text, of)
      return Either.isRight(decoded) ? decoded.right : refuse(step, decoded.left)
    },
  }
}

const unheard = readerOf(() => {})

/** What the functions that stand at a place are given. */
export const partsAt = (place: Place, onUnreadable: OnUnreadable): ContextParts => {
  const reader = readerOf(onUnreadable)
  return { input: place.session.input, source: place.source(reader), extras: place.extras(reader), onUnreadable }
}
