/** Schedules, and the runs that they start: a firing is one transaction (D37). */
import type { CheckpointDriver, FireResult, RunStatus, ScheduleRow } from "@cairn/core"
import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import type { Database, Row } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, computed, readAll, readEach, readFirst, readRow } from "../readRow.js"
import { isFinal } from "./heldRuns.js"
import { newRunRow, runStatements } from "../statements/runs.js"
import { scheduleStatements } from "../statements/schedules.js"
import { scheduleTable } from "../tables.js"

type ScheduleCalls = Pick<
  CheckpointDriver,
  "putSchedule" | "removeSchedule" | "listSchedules" | "nextSchedules" | "fireSchedule"
>

interface Moved {
  readonly overlap: string
  readonly lastRunId: string | null
}

const movedColumns = [computed("overlap", "text"), { ...computed("lastRunId", "text"), nullable: true }]

const statusColumns = [computed("status", "text")]

const readSchedule = ({ scheduleId }: Row): string => `read schedule '${String(scheduleId)}'`

const leftAlone =
  "a schedule cannot be read, and is left alone: mend the column that is named, or remove it and put it anew"

export const schedules = (dialect: Dialect, database: Database): ScheduleCalls => {
  const statements = scheduleStatements(dialect)
  const { insert } = runStatements(dialect)
  const { columns } = scheduleTable

  const putSchedule: CheckpointDriver["putSchedule"] = (schedule) => {
    const operation = `put schedule '${schedule.scheduleId}'`
    return Effect.flatMap(
      database.transaction(operation, "usual", (session) =>
        Effect.flatMap(
          attempt(() => statements.put(schedule)),
          session.run,
        ),
      ),
      (rows) => attempt(() => readAll<ScheduleRow>(operation, columns, rows)[0]!),
    )
  }

  const removeSchedule: CheckpointDriver["removeSchedule"] = (namespace, scheduleId) =>
    Effect.map(
      database.transaction(`remove schedule '${scheduleId}'`, "usual", (session) =>
        session.run(statements.remove(namespace, scheduleId)),
      ),
      (rows) => rows.length > 0,
    )

  const listSchedules: CheckpointDriver["listSchedules"] = (page) => {
    const operation = "list schedules"
    if (page.limit < 1) return Effect.succeed([])
    return attempt(() => statements.list(page)).pipe(
      Effect.flatMap((statement) => database.query(operation, statement)),
      Effect.flatMap((rows) => attempt(() => rows.map((row) => readRow<ScheduleRow>(readSchedule(row), columns, row)))),
    )
  }

  const nextSchedules: CheckpointDriver["nextSchedules"] = (asked) => {
    const operation = "look for schedules"
    if (asked.limit < 1 || asked.workflows.length === 0) return Effect.succeed([])
    return Effect.flatMap(database.query(operation, statements.next(asked)), (rows) =>
      Effect.flatMap(
        attempt(() => Array.separate(readEach<ScheduleRow>(readSchedule, columns, rows))),
        // One that failed the look would keep all others from being fired (D14).
        ([unreadable, readable]) =>
          Effect.as(
            Effect.forEach(unreadable, (error) => Effect.logError(leftAlone, error), { discard: true }),
            readable,
          ),
      ),
    )
  }

  const fireSchedule: CheckpointDriver["fireSchedule"] = (fire) => {
    const operation = `fire schedule '${fire.scheduleId}'`
    const { namespace, run } = fire
    return database.transaction(operation, "usual", (session) =>
      Effect.gen(function* () {
        const move = yield* attempt(() => statements.move(fire))
        const rows = yield* session.run(move)
        const moved = yield* attempt(() => readFirst<Moved>(operation, movedColumns, rows))
        if (moved === null) return { _tag: "Stale" } as FireResult
        if (moved.overlap === "skip" && moved.lastRunId !== null) {
          const found = yield* session.run(statements.statusOf(namespace, moved.lastRunId))
          const last = yield* attempt(() => readFirst<{ readonly status: RunStatus }>(operation, statusColumns, found))
          if (last !== null && !isFinal(last.status)) return { _tag: "Skipped" } as FireResult
        }
        const create = yield* attempt(() => insert([newRunRow(run)]))
        const created = yield* session.run(create)
        yield* session.run(statements.started(fire))
        return { _tag: "Fired", created: created.length > 0 } as FireResult
      }),
    )
  }

  return { putSchedule, removeSchedule, listSchedules, nextSchedules, fireSchedule }
}
