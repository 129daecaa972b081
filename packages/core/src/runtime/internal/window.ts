/**
 * The window of a run: seen, changed, and kept small.
 *
 * - X2: a change is committed together with its step, or not at all.
 * - X3: what is seen is decoded from what is committed, on the first run as on a resume.
 * - Steps beside each other change the window as it stands when they are committed, one after the other: no change is lost.
 * - Nothing that a step was paid for is lost to its window: where that is too large, the step is kept all the same.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { WindowChange, WindowDefinition } from "../../dsl/Window.js"
import { codecOf, type Codec } from "../../model/Codec.js"
import { InvalidValue, StepThrew } from "../../model/Errors.js"
import { WindowTooLarge } from "../../model/Failures.js"
import type { AttemptEnd } from "./attempt.js"
import { lookContext, type OnUnreadable } from "./context.js"
import type { Attempt } from "./decide.js"
import type { OperationState } from "./operationState.js"
import { readerOf } from "./places.js"
import type { Parts, RunSession } from "./session.js"
import { bytesOfText, isCompaction, madeBy, stateRecord, windowStep, type WindowState } from "./windowStates.js"

type StepPart = NonNullable<Parts["steps"]>[number]

/** Why a change could not be committed; its attempt comes to that. */
export type Refusal = Exclude<AttemptEnd, { readonly _tag: "Passed" }>

const definitionOf = (session: RunSession): WindowDefinition => session.env.definition.window!

const codecFor = (session: RunSession): Codec<unknown> => codecOf(definitionOf(session).schema)

const gateFor = (session: RunSession, given: unknown, place: string) =>
  codecFor(session).gate(given, { place, maxLength: session.env.maxValueLength })

const decoded = (session: RunSession, { record }: WindowState): Either.Either<unknown, InvalidValue> =>
  codecFor(session).decode(record.result, "stored window")

// ---- seen ------------------------------------------------------------------------------------------------------

/** Adds `window`, as it stands now: decoded when it is looked at, and for this function alone. */
export const withWindow = <A extends object>(session: RunSession, context: A, onUnreadable: OnUnreadable): A => {
  const state = session.window
  if (state === null || state === undefined) return context
  let read: { readonly value: unknown } | null = null
  const get = () => {
    const { record } = state
    read ??= { value: readerOf(onUnreadable).read(codecFor(session), record.result, "stored window", record.path) }
    return read.value
  }
  return Object.defineProperty(context, "window", { enumerable: true, get })
}

const hidden = (): never => {
  throw new TypeError(
    "a step that performs does not see the window, which may be another after a crash; take what is sent from the result of a step before",
  )
}

/** Adds `window` and `changeWindow` to what a step's function is given. */
export const windowIn = (
  session: RunSession,
  { node, path }: Attempt,
  state: OperationState,
  context: object,
  onUnreadable: OnUnreadable,
): void => {
  // X4: payloads follow from what does not change.
  if (node.operations.length > 0) Object.defineProperty(context, "window", { enumerable: false, get: hidden })
  else withWindow(session, context, onUnreadable)
  // What compacts it changes it by what it gives.
  if (isCompaction(path)) return
  const changeWindow = (change: unknown): void => {
    if (typeof change !== "function")
      throw new TypeError("changeWindow takes a function from the window to the next one")
    if (state.closed)
      throw new TypeError(`the window was changed after step '${node.name}' had ended; wait for it before`)
    state.changes = [...(state.changes ?? []), change as WindowChange]
  }
  Object.defineProperty(context, "changeWindow", { enumerable: true, value: changeWindow })
}

// ---- changed ---------------------------------------------------------------------------------------------------

const tooLarge = (session: RunSession, state: WindowState, bytes: number): WindowTooLarge => {
  const { maxBytes } = definitionOf(session)
  return new WindowTooLarge({ step: madeBy(state) ?? windowStep, bytes, maxBytes })
}

/** Calls a function of the workflow's author. */
const asked = (step: string, ask: () => unknown): Effect.Effect<unknown, StepThrew> =>
  Effect.try({ try: ask, catch: (thrown) => new StepThrew({ step, thrown }) })

/** What a plain function makes of a window, if that fits; null where there is none, or it does not. */
const compactedText = (session: RunSession, window: unknown): Effect.Effect<string | null> => {
  const { compact, maxBytes } = definitionOf(session)
  if (typeof compact !== "function") return Effect.succeed(null)
  return asked(windowStep, () => compact(window)).pipe(
    Effect.flatMap((given) => gateFor(session, given, "compacted window")),
    Effect.map(({ text }) => (bytesOfText(text) <= maxBytes ? text : null)),
    // The step is kept with its own window; what is wrong with the compaction is told when it is tried again by itself.
    Effect.catchAll(() => Effect.succeed(null)),
  )
}

/**
 * The window after a step that has given `output`, as its commit keeps it; null where nothing has changed. To be asked in turn with
 * the run's commits: it goes by the window as it stands. X3: it is gated as outputs are, and refused with the output of its step.
 */
export const changed = (
  session: RunSession,
  { node, path }: Attempt,
  changes: ReadonlyArray<WindowChange>,
  output: string | null,
): Effect.Effect<StepPart | null, Refusal> =>
  Effect.gen(function* () {
    const state = session.window!
    const now = decoded(session, state)
    if (Either.isLeft(now)) {
      const park = { reason: "IncompatibleCheckpoint", step: state.record.path, problem: now.left.message } as const
      return yield* Effect.fail<Refusal>({ _tag: "Stopped", stop: { _tag: "Park", park } })
    }
    let window = now.right
    for (const change of changes) {
      const before = window
      window = yield* Effect.mapError(
        asked(node.name, () => change(before)),
        (error): Refusal => ({ _tag: "Failed", error, defect: false }),
      )
    }
    const { text, value } = yield* Effect.mapError(
      gateFor(session, window, `window after step '${node.name}'`),
      (error): Refusal => ({ _tag: "Rejected", error, raw: output }),
    )
    if (text === state.record.result) return null
    const fits = bytesOfText(text) <= definitionOf(session).maxBytes
    const kept = fits ? text : ((yield* compactedText(session, value)) ?? text)
    return stateRecord(session.seq + 1, kept, path)
  })

// ---- by itself -------------------------------------------------------------------------------------------------

/** The window with which a run begins. */
export const firstWindow = (session: RunSession, onUnreadable: OnUnreadable): Effect.Effect<StepPart, unknown> => {
  const { initial } = definitionOf(session)
  const source = { get: () => undefined, names: () => [] }
  const context = lookContext({ input: session.input, source, extras: null, onUnreadable })
  const given = typeof initial === "function" ? asked(windowStep, () => initial(context)) : Effect.succeed(initial)
  return given.pipe(
    Effect.flatMap((window) => gateFor(session, window, "initial window")),
    Effect.map(({ text }) => stateRecord(session.seq + 1, text, null)),
  )
}

/** A window that is too large, as the workflow's plain function makes it smaller. */
export const shrunk = (session: RunSession, onUnreadable: OnUnreadable): Effect.Effect<StepPart, unknown> =>
  Effect.gen(function* () {
    const state = session.window!
    const { compact, maxBytes } = definitionOf(session)
    if (typeof compact !== "function") return yield* tooLarge(session, state, state.bytes)
    const window = decoded(session, state)
    if (Either.isLeft(window)) onUnreadable(state.record.path, window.left)
    const given = yield* Effect.flatMap(window, (window) => asked(windowStep, () => compact(window)))
    const { text } = yield* gateFor(session, given, "compacted window")
    const bytes = bytesOfText(text)
    return bytes <= maxBytes
      ? stateRecord(session.seq + 1, text, madeBy(state))
      : yield* tooLarge(session, state, bytes)
  })

/** What a step that compacts commits: the window that it has given, under its own path. */
export const compactedParts = (
  session: RunSession,
  { attempt, path }: Attempt,
  { durationMs, output: { text } }: Extract<AttemptEnd, { readonly _tag: "Passed" }>,
): Parts => {
  const rest = { path, attempts: attempt, durationMs }
  return { run: session.running(path), steps: [stateRecord(session.seq + 1, text, madeBy(session.window!), rest)] }
}

/** Why such a window counts as a failure of its attempt: it is still too large. Null where it fits. */
export const stillTooLarge = (session: RunSession, text: string | null): WindowTooLarge | null => {
  const bytes = bytesOfText(text)
  return bytes <= definitionOf(session).maxBytes ? null : tooLarge(session, session.window!, bytes)
}
