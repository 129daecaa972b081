/**
 * What a decision asks for is read: of a resumed run only what is in scope, never what is over (X7).
 */
import * as Effect from "effect/Effect"
import type { StepRecord } from "../../model/Records.js"
import type { StepsQuery } from "../../store/CheckpointDriver.js"
import type { Load } from "./decide.js"
import { toTakeBack } from "./failing.js"
import { Fan, type FanItem } from "./frames.js"
import type { Failure } from "./leave.js"
import { instanceOf, itemsPath, listScope, prefixOf, scopeOf } from "./paths.js"
import { indexOf } from "./planIndex.js"
import type { RunSession } from "./session.js"
import { windowScope } from "./windowStates.js"

const read = (session: RunSession, query: Partial<StepsQuery>): Effect.Effect<ReadonlyArray<StepRecord>, Failure> => {
  const { namespace, runId } = session.lease
  const usual = { scopes: null, newestFirst: false, after: null, limit: null, withResults: true }
  return session.persist(session.env.store.loadSteps({ namespace, runId, ...usual, ...query }))
}

const turn = (session: RunSession, path: string) =>
  Effect.map(read(session, { scopes: [listScope(path)], newestFirst: true, limit: 1 }), ([latest]) => {
    session.turns.set(path, latest ?? null)
  })

const fan = (session: RunSession, path: string) =>
  Effect.gen(function* () {
    const [items] = yield* read(session, { scopes: [itemsPath(path)] })
    if (items === undefined) return void session.fans.set(path, null)
    const ends = yield* read(session, { scopes: [listScope(path)], withResults: false })
    const ended = ends.map((end) => ({ key: instanceOf(end.path)!.key, failed: end.effect === "item:failed" }))
    session.openFan(path, items.result, ended, false)
  })

/** Frames of turns and items that are over, with what functions in them look at: states of turns, items. */
const surroundings = (session: RunSession, scope: string, before: StepRecord) =>
  Effect.gen(function* () {
    for (let at = scope; at !== ""; at = scopeOf(prefixOf(at))) {
      const { container } = instanceOf(at)!
      if (session.control(container).kind === "forEach") {
        if ((session.fans.get(container) ?? null) !== null) continue
        const [items] = yield* read(session, { scopes: [itemsPath(container)] })
        session.fans.set(container, new Fan(JSON.parse(items?.result ?? "[]") as ReadonlyArray<FanItem>, 0))
      } else if (session.turnAt(at) === null) {
        const query = { scopes: [listScope(container)], newestFirst: true, limit: 1, after: before }
        const [begun] = yield* read(session, query)
        if (begun !== undefined) session.pastTurns.set(begun.path, begun)
      }
    }
  })

const frames = (session: RunSession, scopes: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const steps = yield* read(session, { scopes })
    for (const scope of scopes) {
      session.frame(scope, false)
      session.unread.delete(scope)
    }
    for (const step of steps) session.note(step)
    // What takes a step back stands where that step stood, however long ago.
    const [undone] = session.failure === null ? [] : (session.undo ?? [])
    if (undone !== undefined) yield* surroundings(session, scopeOf(prefixOf(undone.path)), undone)
  })

const undo = (session: RunSession) =>
  Effect.gen(function* () {
    const { isFlat } = indexOf(session.env.plan)
    const performed = isFlat
      ? [...session.frames.get("")!.steps.values()]
      : yield* Effect.zipRight(session.barrier(), read(session, { newestFirst: true }))
    session.undo = toTakeBack(session, performed)
  })

/** The newest of its states is the window: no more of them is read. */
export const loadWindow = (session: RunSession): Effect.Effect<void, Failure> =>
  Effect.map(read(session, { scopes: [windowScope], newestFirst: true, limit: 1 }), ([latest]) =>
    session.openWindowState(latest ?? null),
  )

const waits = (session: RunSession) =>
  Effect.gen(function* () {
    const { namespace, runId } = session.lease
    const loaded = yield* session
      .persist(session.env.store.loadWaits(namespace, runId))
      .pipe(Effect.catchTag("RunNotFound", () => Effect.fail(session.leaseLost())))
    session.waits = new Map(loaded.waits.map((wait) => [wait.path, wait]))
    session.inbox = loaded.inbox
    session.mail.waitsAreFresh = true
  })

/** X7: where, not what: of a result that a fork goes on with, its own step reads it. */
const reused = (session: RunSession) =>
  Effect.gen(function* () {
    const { namespace, runId } = session.lease
    const performed = yield* session
      .persist(session.env.store.loadPerformed(namespace, runId))
      .pipe(Effect.catchTag("RunNotFound", () => Effect.fail(session.leaseLost())))
    session.reused = new Set(performed.flatMap(({ path, seq }) => (seq === null ? [path] : [])))
  })

/** Reads all that a decision asks for. */
export const loadAll = (session: RunSession, loads: ReadonlyArray<Load>): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const paths = (what: Load["what"]) => [...new Set(loads.flatMap((load) => (load.what === what ? [load.path] : [])))]
    for (const path of paths("turn")) yield* turn(session, path)
    for (const path of paths("fan")) yield* fan(session, path)
    const scopes = paths("frame")
    if (scopes.length > 0) yield* frames(session, scopes)
    const open = paths("open")
    if (open.length > 0) {
      const { namespace, runId } = session.lease
      session.addOpen(open, yield* session.persist(session.env.store.loadOpen(namespace, runId, open)))
    }
    if (paths("reused").length > 0) yield* reused(session)
    if (paths("window").length > 0) yield* loadWindow(session)
    if (paths("waits").length > 0) yield* waits(session)
    if (paths("undo").length > 0) yield* undo(session)
  })
