/** One intent, looked up, or settled by whoever knows its outcome. */
import type { AnswerRow, OldOutputs, OutcomeRow } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { whole, wholeMs } from "../readRow.js"
import { textOf, type Statement } from "../Statement.js"
import { keptOutputs } from "../indexes.js"
import { effectTable, recordColumns, selectList } from "../tables.js"

type EffectKey = Pick<OutcomeRow, "namespace" | "runId" | "path" | "generation">

export const effectStatements = (dialect: Dialect) => {
  const effect = dialect.table("effect")
  const find = textOf(
    dialect,
    (place) => `select ${selectList(dialect, recordColumns(effectTable))} from ${effect}
where namespace = ${place()} and run_id = ${place()} and path = ${place()} and generation = ${place()}`,
  )
  // D9: the first writer wins, and only over the very intent that it knows.
  const settle = overOneRow(dialect)
  return {
    find: ({ generation, namespace, path, runId }: EffectKey): Statement => ({
      text: find,
      params: [namespace, runId, path, whole("read an effect", "generation", generation)],
    }),
    settle,
    answer: byAnswer(dialect),
    forgetOutputs: forgettingOutputs(dialect),
  }
}

/** D43 */
const forgettingOutputs = (dialect: Dialect) => {
  const attempt = dialect.table("attempt")
  const text = textOf(
    dialect,
    (place) => `with old (old_namespace, old_run_id, old_path, old_attempt) as (
  select old.namespace, old.run_id, old.path, old.attempt from ${attempt} as old
  join ${dialect.table("run")} as run on run.namespace = old.namespace and run.run_id = old.run_id and run.status <> 'review'
  where old.${keptOutputs.replace(" and ", " and old.")} and old.namespace = ${place()} and old.ended_at < ${dialect.now} - ${place()}
  order by old.ended_at limit ${place()}
)
update ${attempt} as attempt set output = null from old
where attempt.namespace = old_namespace and attempt.run_id = old_run_id and attempt.path = old_path
  and attempt.attempt = old_attempt
returning path as "path"`,
  )
  const operation = "forget outputs"
  return ({ limit, namespace, olderThanMs }: OldOutputs): Statement => ({
    text,
    params: [namespace, wholeMs(operation, "olderThanMs", olderThanMs), whole(operation, "limit", limit)],
  })
}

const settledColumns = [
  { name: "given_state", field: "state", type: "text", nullable: false },
  { name: "given_outcome", field: "outcome", type: "json", nullable: true },
] as const

const overOneRow = (dialect: Dialect) => {
  const text = textOf(
    dialect,
    (place) => `with given (given_state, given_outcome) as (${dialect.row(settledColumns, place)})
update ${dialect.table("effect")} as effect
set state = given_state, outcome = given_outcome, settled_at = ${dialect.now}
from given
where effect.namespace = ${place()} and effect.run_id = ${place()} and effect.path = ${place()}
  and effect.generation = ${place()} and effect.idempotency_key = ${place()} and effect.payload_hash = ${place()}
  and effect.claim_token = ${place()} and effect.state = 'intended'
returning path as "path"`,
  )
  return (outcome: OutcomeRow): Statement => ({
    text,
    params: [
      outcome.state,
      outcome.outcome,
      outcome.namespace,
      outcome.runId,
      outcome.path,
      whole("record an outcome", "generation", outcome.generation),
      outcome.idempotencyKey,
      outcome.payloadHash,
      outcome.claimToken,
    ],
  })
}

/** D19: a person's word, over whatever intent is still unknown at that place. */
const byAnswer = (dialect: Dialect) => {
  const text = textOf(
    dialect,
    (place) => `with given (given_state, given_outcome) as (${dialect.row(settledColumns, place)})
update ${dialect.table("effect")} as effect
set state = given_state, outcome = given_outcome, settled_at = ${dialect.now}
from given
where effect.namespace = ${place()} and effect.run_id = ${place()} and effect.path = ${place()}
  and effect.generation = ${place()} and effect.state = 'intended'
returning path as "path"`,
  )
  return ({ generation, namespace, outcome, path, runId, state }: AnswerRow): Statement => ({
    text,
    params: [state, outcome, namespace, runId, path, whole("answer", "generation", generation)],
  })
}
