/** One fault each in schedules (D37). */
import { Effect } from "effect"
import { mutant, type Mutant } from "./wrap.js"

const kept = "D37: a schedule comes back"
const pages = "D37: schedules are listed"
const once = "D37: of twenty that fire"
const stale = "D37: a firing of an instant"
const overlaps = "D37: with overlap"

export const scheduleMutants: ReadonlyArray<Mutant> = [
  mutant("a schedule that is put again begins anew", kept, (driver) => ({
    putSchedule: (schedule) =>
      Effect.zipRight(driver.removeSchedule(schedule.namespace, schedule.scheduleId), driver.putSchedule(schedule)),
  })),
  mutant("a schedule that is put again stays as it was", kept, (driver) => ({
    putSchedule: (schedule) =>
      Effect.flatMap(driver.listSchedules({ namespace: schedule.namespace, after: null, limit: 1_000 }), (rows) => {
        const known = rows.find(({ scheduleId }) => scheduleId === schedule.scheduleId)
        return known === undefined ? driver.putSchedule(schedule) : Effect.succeed(known)
      }),
  })),
  mutant("a schedule that is put again loses what was missed", kept, (driver) => ({
    putSchedule: (schedule) =>
      Effect.zipRight(driver.putSchedule({ ...schedule, cron: "other" }), driver.putSchedule(schedule)),
  })),
  mutant("a schedule whose times change is due when it was", kept, (driver) => ({
    putSchedule: (schedule) =>
      Effect.flatMap(driver.listSchedules({ namespace: schedule.namespace, after: null, limit: 1_000 }), (rows) => {
        const known = rows.find(({ scheduleId }) => scheduleId === schedule.scheduleId)
        return driver.putSchedule({ ...schedule, nextAt: known?.nextAt ?? schedule.nextAt })
      }),
  })),
  mutant("a schedule is removed twice", kept, (driver) => ({
    removeSchedule: (namespace, scheduleId) => Effect.as(driver.removeSchedule(namespace, scheduleId), true),
  })),
  mutant("a page of schedules begins anew", pages, (driver) => ({
    listSchedules: (page) => driver.listSchedules({ ...page, after: null }),
  })),
  mutant("schedules are looked for by id", pages, (driver) => ({
    nextSchedules: (asked) =>
      Effect.map(driver.nextSchedules(asked), (rows) =>
        [...rows].sort((a, b) => (a.scheduleId < b.scheduleId ? -1 : 1)),
      ),
  })),
  mutant("schedules of every version are found", pages, (driver) => ({
    nextSchedules: (asked) =>
      driver.nextSchedules({
        ...asked,
        workflows: asked.workflows.flatMap(({ name }) => [1, 2, 3].map((version) => ({ name, version }))),
      }),
  })),
  mutant("a firing reads the instant anew", once, (driver) => ({
    fireSchedule: (fire) =>
      Effect.flatMap(driver.listSchedules({ namespace: fire.namespace, after: null, limit: 1_000 }), (rows) =>
        driver.fireSchedule({
          ...fire,
          at: rows.find(({ scheduleId }) => scheduleId === fire.scheduleId)?.nextAt ?? fire.at,
        }),
      ),
  })),
  mutant("a firing creates its run before it moves the schedule", once, (driver) => ({
    fireSchedule: (fire) => Effect.zipRight(driver.createRun(fire.run), driver.fireSchedule(fire)),
  })),
  mutant("a firing for nothing creates its run", stale, (driver) => ({
    fireSchedule: (fire) =>
      Effect.tap(driver.fireSchedule(fire), ({ _tag }) =>
        _tag === "Stale" ? driver.createRun(fire.run) : Effect.void,
      ),
  })),
  mutant("every schedule may overlap", overlaps, (driver) => ({
    fireSchedule: (fire) =>
      Effect.flatMap(driver.fireSchedule(fire), (result) =>
        result._tag === "Skipped"
          ? Effect.map(driver.createRun(fire.run), ({ created }) => ({ _tag: "Fired" as const, created }))
          : Effect.succeed(result),
      ),
  })),
  mutant("no schedule may overlap", overlaps, (driver) => ({
    putSchedule: (schedule) => driver.putSchedule({ ...schedule, overlap: "skip" }),
  })),
  mutant("a run that has been canceled goes on for ever", overlaps, (driver) => {
    const skipped = new Set<string>()
    return {
      fireSchedule: (fire) =>
        skipped.has(fire.scheduleId)
          ? Effect.succeed({ _tag: "Skipped" as const })
          : Effect.tap(driver.fireSchedule(fire), ({ _tag }) =>
              Effect.sync(() => (_tag === "Skipped" ? skipped.add(fire.scheduleId) : skipped)),
            ),
    }
  }),
  mutant("a run of the instant that is there already holds the schedule up", "D37: a run of the instant", (driver) => ({
    fireSchedule: (fire) =>
      Effect.flatMap(driver.findRun(fire.namespace, fire.run.runId), (row) =>
        row === null ? driver.fireSchedule(fire) : Effect.succeed({ _tag: "Fired" as const, created: false }),
      ),
  })),
]
