/**
 * Operations: the declared writes to the outside world. A step holds at most one, so that a crash can leave at most one
 * outcome unknown, and that one has a key.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import {
  casesCodec,
  codecOf,
  firstOf,
  isSchema,
  type AnySchema,
  type Codec,
  type NoSchema,
  type typeOf,
} from "../model/Codec.js"
import { emptyChoice, nestedChoice, notASchema, performedOutside, type Diagnostic } from "../model/DiagnosticCode.js"
import { StepMisuse, type NotPerformed } from "../model/Errors.js"
import type { checkJson } from "./internal/jsonSide.js"
import { CurrentStep } from "./internal/currentStep.js"
import type { OnUnknown, PolicyName } from "../model/OnUnknown.js"
import { durationMs } from "./OnUnknown.js"

const TypeId: unique symbol = Symbol.for("@cairn/core/Operation") as never

/** How long an operation may take unless it says otherwise. There is no operation without a limit. */
const defaultTimeoutMs = 30_000

/**
 * The handler of an operation, as a requirement of workflows that perform it. `operation.toLayer` provides it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Performs<Name extends string> {
  readonly _performs: Name
}

/** One requirement a name, so that a choice's handlers can be provided one by one. */
export type performs<Names extends string> = Names extends string ? Performs<Names> : never

/**
 * What a handler is told besides the payload.
 *
 * @category models
 * @since 0.1.0
 */
export interface HandlerContext {
  /** Send it to the provider: the same over retries, restarts and deploys. Printable ASCII, at most 255 characters. */
  readonly idempotencyKey: string
  /** Grows with each owner of the run; a provider that knows fencing tokens can refuse an older one. */
  readonly fence: number
  /** Counts the attempts of the step, from 1. */
  readonly attempt: number
  /** Aborted when the operation's timeout passes, the lease is lost or the worker stops. */
  readonly signal: AbortSignal
}

/**
 * What a check found: whether the operation happened, and with which result. A result of `void` may be left out.
 *
 * @category models
 * @since 0.1.0
 */
export type Checked<A> =
  | ([void] extends [A]
      ? { readonly happened: true; readonly result?: A }
      : { readonly happened: true; readonly result: A })
  | { readonly happened: false }

/**
 * What `checkFirst` asks of a handler: it looks up what an earlier send did, and changes nothing.
 *
 * *Errors.* Whatever goes wrong means that it could not find out: it is asked again. Say `happened: false` only if the
 * provider would know by now: the operation is then performed.
 *
 * @category models
 * @since 0.1.0
 */
export interface HandlerCheck<P, A, R = never> {
  readonly check: (payload: P, context: HandlerContext) => Effect.Effect<Checked<A>, unknown, R> | Promise<Checked<A>>
}

/** The further argument of `toLayer`: demanded of `checkFirst`, refused for the others. */
type checkOf<Policy, P, A, R> = [Policy] extends ["checkFirst"]
  ? [check: HandlerCheck<P, A, R>]
  : "checkFirst" extends Policy
    ? [check?: HandlerCheck<P, A, R>]
    : []

/**
 * Any effect that writes to the outside world: an operation, or a choice of several.
 *
 * @category models
 * @since 0.1.0
 */
export interface External<Name extends string, P, A, E, Needs extends string> {
  readonly [TypeId]: typeof TypeId
  readonly kind: "external"
  readonly name: Name
  /** Performs it, in the step that declares it. */
  readonly perform: (payload: P) => Effect.Effect<A, E, performs<Needs>>
  /** The operation that a payload stands for: itself, or the chosen member. */
  readonly members: ReadonlyArray<MemberOperation>
  readonly codecs: OperationCodecs
  readonly _A?: A
  readonly _E?: E
  readonly _needs?: Needs
}

export type AnyOperation = External<any, any, any, any, any>

/** What the runtime needs to know of one real operation. */
export interface MemberOperation {
  readonly name: string
  readonly timeoutMs: number
  readonly onUnknown: OnUnknown
  readonly codecs: OperationCodecs
  /** For a choice: the case that stands for this member. Null where the operation is its own member. */
  readonly case: string | null
}

export interface OperationCodecs {
  readonly payload: Codec<any>
  readonly success: Codec<any>
  readonly failure: Codec<any> | null
}

/**
 * One write to the outside world.
 *
 * *Shape.* `P` payload, `A` success, `E` declared failure, `Policy` the name of what resolves an unknown outcome.
 *
 * @category models
 * @since 0.1.0
 */
export interface Operation<
  Name extends string,
  P,
  A,
  E = never,
  Policy extends PolicyName = PolicyName,
> extends External<Name, P, A, E, Name> {
  /**
   * Provides the handler. It may return an Effect or a Promise. A declared failure or `NotPerformed` says that nothing
   * happened; anything else that goes wrong leaves the outcome unknown, and `onUnknown` resolves it. With the policy
   * `checkFirst` it takes the check as well.
   *
   * *Errors.* Never answer `NotPerformed` to a 409 (the key's first request is still under way) or a 422 (the key was
   * used with another payload): it would move the generation on, and the next key could perform a second time. Throw
   * instead.
   */
  readonly toLayer: <R = never, R2 = never>(
    handler: (payload: P, context: HandlerContext) => Effect.Effect<A, E | NotPerformed, R> | Promise<A>,
    ...check: checkOf<Policy, P, A, R2>
  ) => Layer.Layer<Performs<Name>, never, R | R2>
}

/** The handler as the runtime calls it: what it needs from outside is bound already. */
export interface Handler {
  readonly run: Call
  /** Null where the handler came without one. */
  readonly check: Call | null
}

type Call = (payload: unknown, context: HandlerContext) => Effect.Effect<unknown, unknown> | Promise<unknown>

/** The key under which an operation's handler is found in a worker's context. */
export const handlerTag = (name: string): Context.Tag<any, Handler> => Context.GenericTag(`@cairn/core/Handler/${name}`)

/** Every perform goes through the step that runs it: the guard, the intent and the key live there. */
const performIn = (operation: AnyOperation, payload: unknown): Effect.Effect<any, any, any> =>
  Effect.contextWithEffect((context: Context.Context<never>) =>
    Option.match(Context.getOption(context as Context.Context<any>, CurrentStep), {
      onNone: () => Effect.die(new StepMisuse({ step: "", code: "CRN109", problem: performedOutside(operation.name) })),
      onSome: (step) => step.perform(operation, payload),
    }),
  )

const external = (name: string, codecs: OperationCodecs, members: ReadonlyArray<MemberOperation>): AnyOperation => {
  const self: AnyOperation = {
    [TypeId]: TypeId,
    kind: "external",
    name,
    perform: (payload) => performIn(self, payload),
    members,
    codecs,
  }
  return self
}

type AnyCall = (payload: any, context: HandlerContext) => any

const bound =
  (call: AnyCall, services: Context.Context<never>): Call =>
  (payload, handlerContext) => {
    const result: unknown = call(payload, handlerContext)
    return Effect.isEffect(result)
      ? (Effect.provide(result as Effect.Effect<unknown, unknown, never>, services) as Effect.Effect<unknown, unknown>)
      : (result as Promise<unknown>)
  }

const handlerLayer = (name: string, handler: AnyCall, check: AnyCall | undefined): Layer.Layer<any, never, any> =>
  Layer.effect(
    handlerTag(name),
    Effect.map(Effect.context<never>(), (services): Handler => ({
      run: bound(handler, services),
      check: typeof check === "function" ? bound(check, services) : null,
    })),
  )

/** A choice has no handler of its own, and its members' cases would be lost in another choice. */
type checkMembers<Ops> = {
  readonly [K in keyof Ops]: Ops[K] extends { readonly toLayer: unknown } ? unknown : nestedChoice<K & string>
}

type payloadOf<Op> = Op extends { readonly perform: (payload: infer P) => any } ? P : never
type successOf<Op> = Op extends { readonly perform: (payload: any) => Effect.Effect<infer A, any, any> } ? A : never
type failureOf<Op> = Op extends { readonly perform: (payload: any) => Effect.Effect<any, infer E, any> } ? E : never
type needsOf<Op> = Op extends { readonly perform: (payload: any) => Effect.Effect<any, any, Performs<infer N>> }
  ? N
  : never

/**
 * Declares operations.
 *
 * @category constructors
 * @since 0.1.0
 */
export interface OperationConstructors {
  /**
   * Declares one write to the outside world.
   *
   * *Shape.* `timeout` is 30 seconds unless given, and cannot be infinite. `failure` lists what the provider may refuse;
   * a declared failure means that nothing happened.
   *
   * @example
   * ```ts
   * import { OnUnknown, Operation } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const Charge = Operation.make("payments.charge", {
   *   payload: Schema.Struct({ customer: Schema.String, cents: Schema.Int }),
   *   success: Schema.Struct({ id: Schema.String }),
   *   onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
   * })
   * Charge.name
   * // => "payments.charge"
   * ```
   */
  make<
    const Name extends string,
    PS extends AnySchema,
    AS extends AnySchema,
    Policy extends OnUnknown,
    FS extends AnySchema = NoSchema,
  >(
    name: Name,
    definition: {
      readonly payload: checkJson<`payload of operation '${Name}'`, PS> & PS
      readonly success: checkJson<`success of operation '${Name}'`, AS> & AS
      readonly failure?: checkJson<`failure of operation '${Name}'`, FS> & FS
      readonly onUnknown: Policy
      readonly timeout?: Duration.DurationInput
    },
  ): Operation<Name, typeOf<PS>, typeOf<AS>, typeOf<FS>, Policy["policy"]>

  /**
   * One of several operations, chosen at run time (an agent's tool choice): one operation, one intent that records the
   * case. A resume never chooses again; each member keeps its own policy and handler.
   */
  oneOf<const Ops extends Record<string, AnyOperation>>(
    operations: checkMembers<Ops> & Ops,
  ): External<
    `oneOf(${keyof Ops & string})`,
    { [K in keyof Ops]: { readonly case: K; readonly payload: payloadOf<Ops[K]> } }[keyof Ops],
    { [K in keyof Ops]: { readonly case: K; readonly result: successOf<Ops[K]> } }[keyof Ops],
    failureOf<Ops[keyof Ops]>,
    needsOf<Ops[keyof Ops]>
  >
}

/** What callers without types got wrong, kept for `compile` to report: a definition is no place to throw. */
const problems = new WeakMap<object, ReadonlyArray<Omit<Diagnostic, "step">>>()

export const problemsOf = (operation: AnyOperation): ReadonlyArray<Omit<Diagnostic, "step">> =>
  problems.get(operation) ?? []

/** A schema that was left out is found by `compile`, which sees the missing codec. */
const codecOrNull = (schema: unknown): Codec<any> | null => (isSchema(schema) ? codecOf(schema) : null)

export const Operation: OperationConstructors = {
  make: (name: string, definition: any): any => {
    const codecs = {
      payload: codecOrNull(definition?.payload),
      success: codecOrNull(definition?.success),
      failure: definition?.failure === undefined ? null : codecOrNull(definition.failure),
    } as OperationCodecs
    const member: MemberOperation = {
      name,
      timeoutMs: definition?.timeout === undefined ? defaultTimeoutMs : durationMs(definition.timeout),
      onUnknown: definition?.onUnknown,
      codecs,
      case: null,
    }
    const operation = Object.assign(external(name, codecs, [member]), {
      toLayer: (handler: AnyCall, probe?: { readonly check?: AnyCall }) => handlerLayer(name, handler, probe?.check),
    })
    // A missing failure is fine, a failure that is no schema is not: without this, both would look the same.
    if (definition?.failure !== undefined && codecs.failure === null) {
      problems.set(operation, [
        {
          code: "CRN105",
          message: notASchema(`failure of operation '${typeof name === "string" ? name : typeof name}'`),
        },
      ])
    }
    return operation
  },
  oneOf: (operations: Record<string, AnyOperation>): any => {
    const given = Object.entries(operations ?? {})
    const entries = given.filter(([, operation]) => isOperation(operation) && "toLayer" in operation)
    const failures = entries.flatMap(([, op]) => (op.codecs.failure === null ? [] : [op.codecs.failure]))
    const choice = external(
      `oneOf(${entries.map(([name]) => name).join("|")})`,
      {
        payload: casesCodec(
          "payload",
          entries.map(([name, op]) => [name, op.codecs.payload]),
        ),
        success: casesCodec(
          "result",
          entries.map(([name, op]) => [name, op.codecs.success]),
        ),
        failure: firstOf(failures),
      },
      entries.flatMap(([name, op]) => op.members.map((member) => ({ ...member, case: name }))),
    )
    problems.set(choice, [
      ...(given.length === 0 ? [{ code: "CRN107", message: emptyChoice } as const] : []),
      ...given
        .filter((entry) => !entries.includes(entry))
        .map(([name]) => ({ code: "CRN101", message: nestedChoice(name) }) as const),
      ...entries.flatMap(([, op]) => problemsOf(op)),
    ])
    return choice
  },
}

export const isOperation = (value: unknown): value is AnyOperation =>
  typeof value === "object" && value !== null && TypeId in value
