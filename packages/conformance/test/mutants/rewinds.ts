/** One fault each in going back (D42). */
import type { CheckpointDriver, RewindRow } from "@cairn/core"
import { Effect } from "effect"
import { mutant, type Mutant } from "./wrap.js"

const rewinding = (
  fault: string,
  caughtBy: string,
  rewindRun: (driver: CheckpointDriver, rewind: RewindRow) => ReturnType<CheckpointDriver["rewindRun"]>,
): Mutant => mutant(fault, caughtBy, (driver) => ({ rewindRun: (rewind) => rewindRun(driver, rewind) }))

const undone = "D42: what was committed from there on"
const outside = "D42: nothing is undone where something has happened"
const refused = "D42: a rewind of somebody who is no owner"

/** A driver that hides of a run what a rewind would otherwise have to judge by. */
const blind = (driver: CheckpointDriver, rewind: RewindRow) =>
  Effect.flatMap(driver.rewindRun(rewind), (result) =>
    result._tag !== "Performed"
      ? Effect.succeed(result)
      : // Nothing is undone from there on, and yet the run is as if it had gone back.
        driver.rewindRun({ ...rewind, toSeq: rewind.base + 1 }),
  )

export const rewindMutants: ReadonlyArray<Mutant> = [
  rewinding("a rewind leaves the commit that it is to go back before", undone, (driver, rewind) =>
    driver.rewindRun({ ...rewind, toSeq: rewind.toSeq + 1 }),
  ),
  rewinding("a rewind takes one commit too many", undone, (driver, rewind) =>
    driver.rewindRun({ ...rewind, toSeq: rewind.toSeq - 1 }),
  ),
  rewinding("a rewind leaves no mark where it says", undone, (driver, rewind) =>
    driver.rewindRun({ ...rewind, mark: { ...rewind.mark, path: `${rewind.mark.path}-` } }),
  ),
  rewinding("a rewind keeps the cursor", undone, (driver, rewind) =>
    driver.rewindRun({ ...rewind, cursor: "elsewhere" }),
  ),
  rewinding("a rewind goes over what has happened outside", outside, blind),
  rewinding("a rewind tells nobody's run of what has happened in it", outside, (driver, rewind) =>
    Effect.map(driver.rewindRun(rewind), (result) => (result._tag === "Refused" ? { _tag: "Performed" } : result)),
  ),
  rewinding("a rewind needs no token", refused, (driver, rewind) =>
    Effect.flatMap(driver.findRun(rewind.lease.namespace, rewind.lease.runId), (row) =>
      driver.rewindRun({ ...rewind, lease: { ...rewind.lease, claimToken: row?.claimToken ?? "" } }),
    ),
  ),
  rewinding("a rewind builds on whatever stands", refused, (driver, rewind) =>
    Effect.flatMap(driver.findRun(rewind.lease.namespace, rewind.lease.runId), (row) =>
      driver.rewindRun({ ...rewind, base: row?.seq ?? 0, seq: (row?.seq ?? 0) + 1 }),
    ),
  ),
  rewinding("a rewind that is refused does not say what stands", refused, (driver, rewind) =>
    Effect.map(driver.rewindRun(rewind), (result) => (result._tag === "Refused" ? { ...result, run: null } : result)),
  ),
  mutant("a rewind leaves waits open", undone, (driver) => {
    const left = new Map<string, unknown>()
    return {
      rewindRun: (rewind) =>
        Effect.flatMap(driver.loadWaits(rewind.lease.namespace, rewind.lease.runId), (loaded) =>
          Effect.tap(driver.rewindRun(rewind), () => Effect.sync(() => left.set(rewind.lease.runId, loaded))),
        ),
      loadWaits: (namespace, runId) =>
        Effect.map(driver.loadWaits(namespace, runId), (loaded) => (left.get(runId) as typeof loaded) ?? loaded),
    }
  }),
  mutant("a rewind leaves attempts behind", "D42: attempts go with their steps", (driver) => {
    const left = new Map<string, Effect.Effect.Success<ReturnType<CheckpointDriver["loadOpen"]>>>()
    return {
      rewindRun: (rewind) =>
        Effect.flatMap(driver.loadOpen(rewind.lease.namespace, rewind.lease.runId, ["later", "read"]), (open) =>
          Effect.tap(driver.rewindRun(rewind), () => Effect.sync(() => left.set(rewind.lease.runId, open))),
        ),
      loadOpen: (namespace, runId, paths) =>
        Effect.map(driver.loadOpen(namespace, runId, paths), (open) => ({
          ...open,
          attempts: left.get(runId)?.attempts ?? open.attempts,
        })),
    }
  }),
  mutant("a rewind forgets that an operation was refused", "D42: attempts go with their steps", (driver) => {
    const gone = new Set<string>()
    return {
      rewindRun: (rewind) =>
        Effect.tap(driver.rewindRun(rewind), () => Effect.sync(() => gone.add(rewind.lease.runId))),
      loadOpen: (namespace, runId, paths) =>
        Effect.map(driver.loadOpen(namespace, runId, paths), (open) =>
          gone.has(runId) ? { ...open, attempts: open.attempts.filter(({ kind }) => kind !== "refused") } : open,
        ),
    }
  }),
  mutant("a rewind keeps the signals that were taken", "D42: signals that were waited for", (driver) => {
    const taken = new Set<string>()
    return {
      rewindRun: (rewind) =>
        Effect.tap(driver.rewindRun(rewind), () => Effect.sync(() => taken.add(rewind.lease.runId))),
      loadSignals: (namespace, runId, names) =>
        Effect.map(driver.loadSignals(namespace, runId, names), (loaded) =>
          loaded !== null && taken.has(runId) ? { ...loaded, signals: [] } : loaded,
        ),
    }
  }),
  mutant("a rewind does not see what happened before it", "D42: what happened outside before that", (driver) => ({
    rewindRun: (rewind) =>
      Effect.flatMap(driver.loadPerformed(rewind.lease.namespace, rewind.lease.runId), (rows) =>
        (rows ?? []).length > 0 ? Effect.succeed({ _tag: "Performed" as const }) : driver.rewindRun(rewind),
      ),
  })),
]
