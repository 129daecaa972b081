/**
 * A worker starts the runs of schedules that are due, of its own workflows.
 *
 * - D37: any number of workers may look; who is first moves the schedule on and creates the run.
 * - It asks the store when something is due, when a schedule is put beside it, and every half minute, or as seldom as an idle
 *   worker looks for runs: a schedule that another process has just made is seen by then.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { codecOf } from "../../model/Codec.js"
import { fingerprint } from "../../model/Ids.js"
import { canonicalText } from "../../model/internal/json.js"
import type { StoreError } from "../../model/Errors.js"
import type { FireSchedule, ScheduleRow } from "../../store/FlowRows.js"
import type { Listener } from "../../store/LocalSignals.js"
import { cronTimes } from "./cronTimes.js"
import { flowOf } from "./flowOf.js"
import type { Core } from "./ownership.js"

/** How long a schedule that nobody here was told of may wait, in milliseconds, unless the worker looks for runs more seldom. */
const usualLookMs = 30_000

const lookMsOf = ({ settings }: Core): number => Math.max(usualLookMs, settings.maxPollMs)

/** Schedules that are read at once. */
const pageSize = 64

/** The run of one instant: who starts it twice starts it once. */
export const scheduledRunId = (scheduleId: string, instant: number): string =>
  `${scheduleId}@${new Date(instant).toISOString()}`

/** The instant that is fired now, and the one after it. */
const instantsOf = (row: ScheduleRow, now: number): Either.Either<{ lastAt: number; nextAt: number }, string> =>
  Either.flatMap(cronTimes(row.cron, row.timeZone), (times) => {
    const lastAt = row.catchUp === "all" ? row.nextAt : (times.lastUntil(row.nextAt - 1, now) ?? row.nextAt)
    const nextAt = times.after(lastAt)
    return nextAt === null ? Either.left(`'${row.cron}' has no later time`) : Either.right({ lastAt, nextAt })
  })

/** A firing of a schedule that is due, or why it cannot be. */
const firingOf = (core: Core, row: ScheduleRow, now: number): Either.Either<FireSchedule, string> =>
  Either.gen(function* () {
    const { namespace, nextAt: at, scheduleId, version } = row
    const { plan, workflow } = core.runnables.get(JSON.stringify([row.workflow, version]))!
    const instants = yield* instantsOf(row, now)
    const input = yield* Either.mapLeft(
      codecOf(workflow.definition.input).decode(row.input, `input of schedule '${scheduleId}'`),
      ({ message }) => message,
    )
    const flow = yield* Either.mapLeft(flowOf(workflow.definition, input), ({ message }) => message)
    const run = {
      ...{ namespace, runId: scheduledRunId(scheduleId, instants.lastAt), workflow: row.workflow, version },
      ...{ planHash: plan.hash, input: row.input, inputHash: fingerprint(canonicalText(row.input)) },
      ...{ parentRunId: null, parentPath: null, wakeAt: null },
      ...flow,
    }
    return { namespace, scheduleId, at, ...instants, run }
  })

/** Fires what is due. Returns how long until something may be. */
const lookOnce = (core: Core, broken: Set<string>): Effect.Effect<number, StoreError> =>
  Effect.gen(function* () {
    const { namespace } = core.settings
    const lookMs = lookMsOf(core)
    const workflows = [...core.runnables.values()].map(({ plan }) => ({ name: plan.workflow, version: plan.version }))
    const rows = yield* core.store.nextSchedules({ namespace, workflows, limit: pageSize })
    if (rows.length === 0) return lookMs
    const now = yield* core.store.now
    const usable = rows.filter(({ nextAt, scheduleId }) => !broken.has(JSON.stringify([scheduleId, nextAt])))
    const due = usable.filter(({ nextAt }) => nextAt <= now)
    for (const row of due) {
      if (core.draining) return lookMs
      const firing = firingOf(core, row, now)
      if (Either.isRight(firing)) {
        yield* core.store.fireSchedule(firing.right)
        continue
      }
      // Looked at anew once it is put again, or this worker is another one.
      broken.add(JSON.stringify([row.scheduleId, row.nextAt]))
      yield* Effect.logError(`schedule '${row.scheduleId}' cannot be fired: ${firing.left}`)
    }
    // What was fired may be due again, and more may be due than were read.
    if (due.length > 0) return 0
    return Math.min(lookMs, Math.max(0, (usable[0]?.nextAt ?? Infinity) - now))
  })

/** Looks for as long as the worker lives. */
export const keepScheduling = (core: Core, put: Listener): Effect.Effect<never> =>
  Effect.gen(function* () {
    const broken = new Set<string>()
    for (;;) {
      const ms = yield* Effect.catchAllCause(lookOnce(core, broken), (cause) =>
        Effect.as(Effect.logWarning("the worker could not look for schedules", cause), lookMsOf(core)),
      )
      if (yield* put.wait(ms)) broken.clear()
    }
  })
