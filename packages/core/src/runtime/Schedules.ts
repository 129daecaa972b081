/** Schedules: workflows that are started again and again, at times of a calendar. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { AnyWorkflow, givenOfWorkflow } from "../builder/Workflow.js"
import { codecOf } from "../model/Codec.js"
import { InvalidSchedule } from "../model/Errors.js"
import { checkId, defaultNamespace, maxIdLength } from "../model/Ids.js"
import { CheckpointStore } from "../store/CheckpointStore.js"
import type { ScheduleRow } from "../store/FlowRows.js"
import { cronTimes } from "./internal/cronTimes.js"
import { flowOf } from "./internal/flowOf.js"
import { scheduledRunId } from "./internal/scheduling.js"

/**
 * What is started when.
 *
 * *Shape.* `id` names the schedule; the run of an instant is named `<id>@<instant>`, such as
 * `nightly@2026-03-29T01:00:00.000Z`. `cron`: five fields (minute, hour, day of the month, month, day of the week), or six with
 * seconds before them; a day of the month or of the week is enough where both are said. `timeZone`: a name such as
 * `Europe/Berlin`. `input`: that of every run. `overlap`: `skip` starts none while the run that it started last goes on; `start`
 * unless given. `catchUp`: of the instants that passed while no worker was there the latest is made good (`latest`, unless
 * given), or each of them (`all`).
 *
 * Where clocks are put forward or back: a specification with `*` for the hour goes by elapsed time, so that nothing stops for an
 * hour. Any other is due once for each of its wall times: in the first pass of an hour that comes twice, and at the moment at
 * which an hour is skipped for the times in it.
 *
 * @category options
 * @since 0.1.0
 */
export interface ScheduleOptions<W extends AnyWorkflow> {
  readonly id: string
  readonly cron: string
  readonly timeZone: string
  readonly input: givenOfWorkflow<W>
  readonly namespace?: string
  readonly overlap?: "start" | "skip"
  readonly catchUp?: "latest" | "all"
}

/**
 * A schedule as it stands.
 *
 * *Shape.* `lastAt`: the instant that was fired last, null before the first. `lastRunId`: the run that it started last.
 *
 * @category models
 * @since 0.1.0
 */
export interface Schedule extends Pick<
  ScheduleRow,
  "namespace" | "workflow" | "version" | "cron" | "timeZone" | "overlap" | "catchUp" | "lastRunId"
> {
  readonly id: string
  readonly nextAt: Date
  readonly lastAt: Date | null
}

const scheduleOf = (row: ScheduleRow): Schedule => {
  const { catchUp, cron, lastAt, lastRunId, namespace, nextAt, overlap, scheduleId, timeZone, version, workflow } = row
  const times = { nextAt: new Date(nextAt), lastAt: lastAt === null ? null : new Date(lastAt) }
  return { id: scheduleId, namespace, workflow, version, cron, timeZone, overlap, catchUp, lastRunId, ...times }
}

const oneOf = <A>(id: string, option: string, words: ReadonlyArray<A>, given: A | undefined) =>
  given === undefined || words.includes(given)
    ? Either.right(given ?? words[0]!)
    : Either.left(
        new InvalidSchedule({ id, problem: `${option} is ${words.map((word) => `'${String(word)}'`).join(" or ")}` }),
      )

export const schedule = <W extends AnyWorkflow>(workflow: W, options: ScheduleOptions<W>) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const plan = yield* workflow.plan
    const { cron, timeZone } = options
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const scheduleId = yield* checkId("schedule id", options.id)
    const invalid = (problem: string) => new InvalidSchedule({ id: scheduleId, problem })
    const longest = maxIdLength - scheduledRunId("", 0).length
    if (scheduleId.length > longest) {
      return yield* invalid(`its id has ${scheduleId.length} characters; with an instant behind it, ${longest} fit`)
    }
    const overlap = yield* oneOf(scheduleId, "overlap", ["start", "skip"] as const, options.overlap)
    const catchUp = yield* oneOf(scheduleId, "catchUp", ["latest", "all"] as const, options.catchUp)
    const times = yield* Either.mapLeft(cronTimes(cron, timeZone), invalid)
    const { definition } = workflow
    const gated = yield* codecOf(definition.input).gate(options.input, { place: `input of schedule '${scheduleId}'` })
    // Whoever makes it is told, not a log at night.
    yield* flowOf(definition, gated.value)
    const nextAt = times.after(yield* store.now)
    if (nextAt === null) return yield* invalid(`'${cron}' has no later time`)
    const row = yield* store.putSchedule({
      ...{ namespace, scheduleId, workflow: plan.workflow, version: plan.version, cron, timeZone },
      ...{ overlap, catchUp, nextAt, input: gated.text },
    })
    return scheduleOf(row)
  })

/**
 * Which schedule is meant.
 *
 * @category options
 * @since 0.1.0
 */
export interface UnscheduleOptions {
  readonly id: string
  readonly namespace?: string
}

export const unschedule = ({ id, namespace }: UnscheduleOptions) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const checked = yield* checkId("namespace", namespace ?? defaultNamespace)
    return yield* store.removeSchedule(checked, yield* checkId("schedule id", id))
  })

/**
 * Which page of schedules.
 *
 * *Shape.* In order of ids. `after`: the last id of the page before. `limit`: 20 unless given, at most 100.
 *
 * @category options
 * @since 0.1.0
 */
export interface SchedulesOptions {
  readonly namespace?: string
  readonly after?: string
  readonly limit?: number
}

const usualPage = 20

const largestPage = 100

export const schedules = ({ after, limit = usualPage, namespace }: SchedulesOptions = {}) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const checked = yield* checkId("namespace", namespace ?? defaultNamespace)
    const most = Math.max(1, Math.min(largestPage, Math.trunc(limit) || usualPage))
    const rows = yield* store.listSchedules({ namespace: checked, after: after ?? null, limit: most })
    return rows.map(scheduleOf)
  })
