/** What people query, and what the driver sums from. */
import type { Dialect } from "./Dialect.js"

/** The calls with what became of their attempts: what people query, and what D41 reads. */
export const createViews = (dialect: Dialect): ReadonlyArray<string> => [
  `create view ${dialect.table("call_cost")} ${dialect.viewOptions}as
select namespace, workflow, version, run_id, step, scope, path, attempt, fence, call_id, claim_token, model, state, settled,
  outcome, day, started_at, ended_at, input_tokens, output_tokens, cached_input_tokens, micro_dollars, at_most,
  case when outcome = 'kept' then coalesce(micro_dollars, 0) * interruptions_since else 0 end as saved
from (
  select paid.*, run.workflow, run.version, run.interruptions - paid.interruptions as interruptions_since,
    ${dialect.utcDay("paid.started_at")} as day,
    case when paid.state = 'begun' and (run.claim_token is null or run.claim_token <> paid.claim_token) then 'unknown'
      else paid.state end as settled,
    case
      when exists (select 1 from ${dialect.table("call")} as later where later.namespace = paid.namespace
        and later.run_id = paid.run_id and later.path = paid.path and later.attempt = paid.attempt and later.fence > paid.fence)
        then 'lost'
      when attempt.kind = 'rejected' then 'rejected'
      when attempt.kind is not null then 'failed'
      when step.attempts = paid.attempt then 'kept'
      when run.fence > paid.fence or run.claim_token is null or run.claim_token <> paid.claim_token
        or run.status in ('completed', 'failed', 'canceled') then 'lost'
      else 'open'
    end as outcome
  from ${dialect.table("call")} as paid
  join ${dialect.table("run")} as run on run.namespace = paid.namespace and run.run_id = paid.run_id
  left join ${dialect.table("attempt")} as attempt on attempt.namespace = paid.namespace and attempt.run_id = paid.run_id
    and attempt.path = paid.path and attempt.attempt = paid.attempt
  left join ${dialect.table("step")} as step on step.run_number = run.number
    and step.scope = paid.scope and step.path = paid.path
) as paid`,
]
