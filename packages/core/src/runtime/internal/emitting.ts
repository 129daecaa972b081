/** What the steps of a run emit, and what readers are told when an attempt has ended. */
import * as Effect from "effect/Effect"
import { InvalidValue } from "../../model/Errors.js"
import { toJsonText } from "../../model/internal/json.js"
import type { CheckpointStoreService } from "../../store/CheckpointStore.js"
import type { Lease } from "../../model/Records.js"
import { asEffect, type Soon } from "./soon.js"
import { liveRun, LiveSource, type LiveStep } from "./liveOutput.js"

/** A run whose steps may emit. `live` is null until one does. */
interface Emitting {
  readonly env: { readonly store: Pick<CheckpointStoreService, "signals"> }
  readonly lease: Lease
  live: LiveSource | null
}

const invalid = (field: string, problem: string): InvalidValue =>
  new InvalidValue({ place: "chunk of live output", field, reason: "NotJson", problem })

/** A chunk as it stands now: nobody can change it afterwards. */
const readChunk = (chunk: unknown): { readonly value: unknown; readonly length: number } => {
  if (typeof chunk === "string") return { value: chunk, length: chunk.length }
  const written = toJsonText(chunk)
  if (!("text" in written)) throw invalid(written.field, written.problem)
  if (written.text === null) throw invalid("", "expected text or JSON, got undefined")
  return { value: JSON.parse(written.text) as unknown, length: written.text.length }
}

/** What an attempt emits with. Nothing is made before its first chunk, and nothing heard after its end. */
export const emitterOf = (
  session: Emitting,
  { attempt, path }: { readonly path: string; readonly attempt: number },
  state: { readonly closed: boolean },
): ((chunk: unknown) => void) => {
  let step: LiveStep | null = null
  return (chunk) => {
    if (state.closed) return
    const { length, value } = readChunk(chunk)
    step ??= (session.live ??= new LiveSource(
      liveRun(session.env.store.signals, session.lease),
      session.lease.fence,
    )).begin(path, attempt)
    step.emit(value, length)
  }
}

/** What follows from the end of an attempt, with what readers are told of it. */
export const told = <A, E>(
  { live }: Emitting,
  {
    frame,
    path,
  }: { readonly path: string; readonly frame: { readonly steps: ReadonlyMap<string, { readonly seq: number }> } },
  hasPassed: boolean,
  after: Soon<A, E>,
): Soon<A, E> => {
  if (live === null || !live.has(path)) return after
  // At once: what follows may be a wait for the next attempt.
  if (!hasPassed) {
    live.discard(path)
    return after
  }
  return Effect.tap(asEffect(after), () =>
    Effect.sync(() => {
      const record = frame.steps.get(path)
      if (record === undefined) live.discard(path)
      else live.committed(path, record.seq)
    }),
  )
}
