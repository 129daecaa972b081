/**
 * Claims of workflows that have limits: what is due is looked for, counted and taken while no other claimer of these workflows
 * can come between (D35, D36).
 *
 * Locks are taken in one order: first those of the workflows, then those of rows.
 */
import type { ClaimLimits, ClaimRequest, RunRow, StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, keyOf, readAll, whole } from "../readRow.js"
import {
  isFirst,
  limitedClaimStatements,
  limitedColumns,
  type LimitedDue,
  type Started,
} from "../statements/limitedClaim.js"

type Take = (
  session: Session,
  request: ClaimRequest,
  picked: ReadonlyArray<LimitedDue>,
) => Effect.Effect<ReadonlyArray<RunRow>, StoreError>

/** Whether any of the workflows has limits: claims of all others are what they are without this file. */
export const isLimited = ({ workflows }: ClaimRequest): boolean => workflows.some(({ limits }) => limits !== undefined)

const limitsOf = (request: ClaimRequest, due: Pick<LimitedDue, "workflow" | "version">): ClaimLimits | undefined =>
  request.workflows.find(({ name, version }) => name === due.workflow && version === due.version)?.limits

/** Those of a look that fit together: each was looked for by itself. */
const fitting = (request: ClaimRequest, found: ReadonlyArray<LimitedDue>): ReadonlyArray<LimitedDue> => {
  const counted = new Map<string, number>()
  const count = (due: LimitedDue, what: string, inKey: boolean) => {
    const key = JSON.stringify([what, due.workflow, ...(inKey ? [due.flowKey] : [])])
    return { key, before: counted.get(key) ?? 0 }
  }
  return found.filter((due) => {
    const limits = limitsOf(request, due)
    if (limits === undefined) return true
    const { perKey, rate, running } = limits
    const isNew = due.fence === 0
    const held = count(due, "held", false)
    const heldInKey = count(due, "held", true)
    const starts = count(due, "starts", false)
    const startsInKey = count(due, "starts", true)
    const begun = rate?.perKey === true ? due.startsInKey + startsInKey.before : due.starts + starts.before
    const fits =
      (running === null || due.held + held.before < running) &&
      (perKey === null || due.heldInKey + heldInKey.before < perKey) &&
      (rate === null || !isNew || begun < rate.count)
    if (!fits) return false
    for (const { before, key } of [held, heldInKey, ...(isNew ? [starts, startsInKey] : [])])
      counted.set(key, before + 1)
    return true
  })
}

/** The first claims of a rate's runs, counted by workflow and key. */
const startsOf = (request: ClaimRequest, taken: ReadonlyArray<RunRow>): ReadonlyArray<Started> => {
  const rated = new Set(
    request.workflows.flatMap(({ limits, name }) => ((limits?.rate ?? null) === null ? [] : [name])),
  )
  const byKey = new Map<string, Started>()
  for (const run of taken) {
    if (!isFirst(run) || !rated.has(run.workflow)) continue
    const flowKey = run.flowKey ?? ""
    const key = keyOf(run.workflow, flowKey)
    const known = byKey.get(key)
    const startedAt = Math.max(known?.startedAt ?? 0, run.updatedAt)
    const { namespace, workflow } = run
    byKey.set(key, { namespace, workflow, flowKey, startedAt, starts: (known?.starts ?? 0) + 1 })
  }
  return [...byKey.values()]
}

export const limitedClaims = (dialect: Dialect, database: Database, take: Take) => {
  const statements = limitedClaimStatements(dialect)
  const operation = "claim runs"

  const noteStarts = (session: Session, request: ClaimRequest, taken: ReadonlyArray<RunRow>) =>
    Effect.gen(function* () {
      const starts = startsOf(request, taken)
      for (const workflow of new Set(starts.map((one) => one.workflow))) {
        const lengths = request.workflows.flatMap(({ limits, name }) =>
          name === workflow ? [limits?.rate?.perMs ?? 0] : [],
        )
        const perMs = yield* attempt(() => whole(operation, "perMs", Math.max(...lengths)))
        yield* session.run(statements.forgetStarts(request.namespace, workflow, perMs))
      }
      for (const one of starts) yield* session.run(statements.addStarts([one]))
    })

  /** Each turn takes what fits. Where something found did not, what is due behind it is looked for. */
  const claimAll = (session: Session, request: ClaimRequest) =>
    Effect.gen(function* () {
      const all: Array<RunRow> = []
      while (all.length < request.limit) {
        const asked = request.limit - all.length
        const rows = yield* session.run(statements.pick(request, asked))
        const found = yield* attempt(() => readAll<LimitedDue>(operation, limitedColumns, rows))
        const picked = fitting(request, found)
        if (picked.length === 0) break
        const taken = yield* take(session, request, picked)
        yield* noteStarts(session, request, taken)
        all.push(...taken)
        // Nothing was left out for what was taken with it; or what was due is somebody else's.
        if (picked.length === found.length || taken.length === 0) break
      }
      return all
    })

  return (request: ClaimRequest): Effect.Effect<ReadonlyArray<RunRow>, StoreError> => {
    const flows = request.workflows.flatMap(({ limits, name }) => (limits === undefined ? [] : [name]))
    const claiming = database.transaction(operation, "usual", (session) =>
      Effect.zipRight(
        statements.lockFlows === null ? Effect.void : session.run(statements.lockFlows(request.namespace, flows)),
        claimAll(session, request),
      ),
    )
    return dialect.looksBeforeClaim
      ? Effect.flatMap(database.query(operation, statements.look(request, 1)), (due) =>
          due.length === 0 ? Effect.succeed([]) : claiming,
        )
      : claiming
  }
}
