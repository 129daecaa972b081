/** What generated workflows are made of: every combinator, to a depth, with operations of every policy among them. */
import * as FastCheck from "effect/FastCheck"

export type Policy = "retryWithKey" | "checkFirst" | "recordFirst" | "review"

/** How the provider answers: at once, after it has refused or declined once, or never but with a decline. */
export type Mood = "obliging" | "busyFirst" | "declinesFirst" | "declines"

/** Whether something fails: `odd` where it stands in a turn or an item of an odd number. */
export type Fails = "never" | "always" | "odd"

/**
 * One generated node, with what stands in it.
 *
 * @category models
 * @since 0.1.0
 */
export type Piece =
  | { readonly kind: "step" | "read" | "transaction" }
  | { readonly kind: "boom"; readonly fails: Fails; readonly retries: boolean }
  | {
      readonly kind: "act"
      readonly policy: Policy
      readonly mood: "obliging" | "busyFirst" | "declinesFirst"
      readonly fails: Fails
      readonly form: "inside" | "performed" | "settled" | "compensated"
    }
  | { readonly kind: "branch" | "match"; readonly taken: 0 | 1; readonly cases: readonly [Pieces, Pieces] }
  | {
      readonly kind: "loop"
      readonly turns: number
      readonly limit: "none" | "stop" | "fail"
      readonly body: Pieces
    }
  | {
      readonly kind: "forEach"
      readonly items: number
      readonly concurrency: number
      readonly collect: boolean
      readonly body: Pieces
    }
  | { readonly kind: "parallel"; readonly arms: readonly [Pieces, Pieces] }
  | { readonly kind: "sleep"; readonly ms: number; readonly how: "value" | "function" | "until" }
  | {
      readonly kind: "signal"
      readonly say: "yes" | "nothing" | "late"
      readonly timeout: "none" | "fail" | "continue"
    }
  | {
      readonly kind: "review"
      readonly say: "yes" | "no" | "nothing" | "late"
      readonly onReject: "fail" | "continue"
      readonly onTimeout: "fail" | "reject"
    }
  | { readonly kind: "child"; readonly settle: boolean; readonly body: Pieces }
  | { readonly kind: "exit"; readonly how: "end" | "fail"; readonly taken: boolean }

export type Pieces = ReadonlyArray<Piece>

export interface PiecesOptions {
  readonly depth: number
  readonly maxPieces: number
  /** On a real clock nothing waits long. */
  readonly clock: "virtual" | "real"
  readonly transactions: boolean
}

type Arbitrary<A> = FastCheck.Arbitrary<A>

const { array, boolean, constant, constantFrom, integer, oneof, record, tuple } = FastCheck

const fails: Arbitrary<Fails> = FastCheck.oneof(
  { weight: 6, arbitrary: constant("never" as const) },
  { weight: 1, arbitrary: constant("always" as const) },
  { weight: 2, arbitrary: constant("odd" as const) },
)

const act: Arbitrary<Piece> = record({
  kind: constant("act" as const),
  policy: constantFrom(...(["retryWithKey", "checkFirst", "recordFirst", "review"] as const)),
  mood: constantFrom(...(["obliging", "obliging", "busyFirst", "declinesFirst"] as const)),
  fails,
  form: constantFrom(...(["inside", "performed", "settled", "compensated"] as const)),
})

const signal: Arbitrary<Piece> = constantFrom(
  ...([
    ["yes", "none"],
    ["yes", "fail"],
    ["yes", "continue"],
    ["nothing", "fail"],
    ["nothing", "continue"],
    ["late", "continue"],
  ] as const),
).map(([say, timeout]) => ({ kind: "signal", say, timeout }))

const review: Arbitrary<Piece> = constantFrom(
  ...([
    ["yes", "fail", "fail"],
    ["yes", "continue", "reject"],
    ["no", "continue", "fail"],
    ["no", "fail", "fail"],
    ["nothing", "continue", "reject"],
    ["nothing", "continue", "fail"],
    ["late", "continue", "reject"],
  ] as const),
).map(([say, onReject, onTimeout]) => ({ kind: "review", say, onReject, onTimeout }))

const leaf = ({ clock, transactions }: PiecesOptions): Arbitrary<Piece> =>
  oneof(
    { weight: 3, arbitrary: constant<Piece>({ kind: "step" }) },
    { weight: 1, arbitrary: constant<Piece>({ kind: "read" }) },
    { weight: 4, arbitrary: act },
    { weight: 1, arbitrary: record({ kind: constant("boom" as const), fails, retries: boolean() }) },
    { weight: 2, arbitrary: signal },
    { weight: 2, arbitrary: review },
    {
      weight: 2,
      arbitrary: record({
        kind: constant("sleep" as const),
        ms: clock === "real" ? constantFrom(0, 60) : constantFrom(0, 200, 2_500, 40_000),
        how: constantFrom(...(["value", "function", "until"] as const)),
      }),
    },
    ...(transactions ? [{ weight: 3, arbitrary: constant<Piece>({ kind: "transaction" }) }] : []),
  )

const composite = (options: PiecesOptions, where: Where): Arbitrary<Piece> => {
  const inner = { ...options, depth: options.depth - 1 }
  const body = (at: Where, minLength = 1) => array(piece(inner, at), { minLength, maxLength: 2 })
  return oneof(
    record({
      kind: constantFrom("branch", "match"),
      taken: constantFrom(0, 1),
      cases: tuple(body(where, 0), body(where, 0)),
    }),
    record({
      kind: constant("loop" as const),
      turns: integer({ min: 1, max: 3 }),
      limit: constantFrom("none", "none", "stop", "fail"),
      body: body({ ...where, mayEnd: false }),
    }),
    record({
      kind: constant("forEach" as const),
      items: integer({ min: 0, max: 4 }),
      concurrency: integer({ min: 1, max: 3 }),
      collect: boolean(),
      body: body({ ...where, mayEnd: false }),
    }),
    record({
      kind: constant("parallel" as const),
      arms: tuple(body({ ...where, mayEnd: false }), body({ ...where, mayEnd: false })),
    }),
    ...(where.inChild
      ? []
      : [record({ kind: constant("child" as const), settle: boolean(), body: body({ inChild: true, mayEnd: true }) })]),
    ...(where.mayEnd
      ? [record({ kind: constant("exit" as const), how: constantFrom("end", "fail"), taken: boolean() })]
      : []),
  ) as Arbitrary<Piece>
}

interface Where {
  /** Nothing else of the run is under way beside it. */
  readonly mayEnd: boolean
  readonly inChild: boolean
}

const piece = (options: PiecesOptions, where: Where): Arbitrary<Piece> =>
  options.depth <= 0
    ? leaf(options)
    : oneof({ weight: 2, arbitrary: leaf(options) }, { weight: 3, arbitrary: composite(options, where) })

/** Lists of pieces. */
export const pieces = (options: PiecesOptions): Arbitrary<Pieces> =>
  array(piece(options, { mayEnd: true, inChild: false }), { minLength: 1, maxLength: options.maxPieces })

// ---- named -----------------------------------------------------------------------------------------------------

/** A piece with its name and its path in the plan. */
export interface Named {
  readonly piece: Piece
  readonly name: string
  readonly path: string
  /** What stands in it: its cases or arms by their order, or its one body. */
  readonly bodies: ReadonlyArray<ReadonlyArray<Named>>
}

export const labels = ["left", "right"] as const

const bodiesOf = (of: Piece): ReadonlyArray<readonly [under: string, Pieces]> => {
  switch (of.kind) {
    case "branch":
    case "match":
      return of.cases.map((body, index) => [`:${labels[index]}/`, body] as const)
    case "parallel":
      return of.arms.map((body, index) => [`:${labels[index]}/`, body] as const)
    case "loop":
    case "forEach":
      return [["[]/", of.body]]
    default:
      return []
  }
}

/** Names are fresh wherever they stand. A child is a plan of its own. */
export const named = (all: Pieces, counter: { next: number } = { next: 0 }, prefix = ""): ReadonlyArray<Named> =>
  all.map((of) => {
    const name = `${of.kind}${counter.next++}`
    const path = `${prefix}${name}`
    const bodies =
      of.kind === "child"
        ? [named(of.body, counter)]
        : bodiesOf(of).map(([under, body]) => named(body, counter, `${path}${under}`))
    return { piece: of, name, path, bodies }
  })
