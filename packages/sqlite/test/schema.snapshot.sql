CREATE VIEW cairn_call_cost as
select namespace, workflow, version, run_id, step, scope, path, attempt, fence, call_id, claim_token, model, state, settled,
  outcome, day, started_at, ended_at, input_tokens, output_tokens, cached_input_tokens, micro_dollars, at_most,
  case when outcome = 'kept' then coalesce(micro_dollars, 0) * interruptions_since else 0 end as saved
from (
  select paid.*, run.workflow, run.version, run.interruptions - paid.interruptions as interruptions_since,
    date(paid.started_at / 1000, 'unixepoch') as day,
    case when paid.state = 'begun' and (run.claim_token is null or run.claim_token <> paid.claim_token) then 'unknown'
      else paid.state end as settled,
    case
      when exists (select 1 from cairn_call as later where later.namespace = paid.namespace
        and later.run_id = paid.run_id and later.path = paid.path and later.attempt = paid.attempt and later.fence > paid.fence)
        then 'lost'
      when attempt.kind = 'rejected' then 'rejected'
      when attempt.kind is not null then 'failed'
      when step.attempts = paid.attempt then 'kept'
      when run.fence > paid.fence or run.claim_token is null or run.claim_token <> paid.claim_token
        or run.status in ('completed', 'failed', 'canceled') then 'lost'
      else 'open'
    end as outcome
  from cairn_call as paid
  join cairn_run as run on run.namespace = paid.namespace and run.run_id = paid.run_id
  left join cairn_attempt as attempt on attempt.namespace = paid.namespace and attempt.run_id = paid.run_id
    and attempt.path = paid.path and attempt.attempt = paid.attempt
  left join cairn_step as step on step.run_number = run.number
    and step.scope = paid.scope and step.path = paid.path
) as paid;

CREATE TABLE cairn_attempt (
  namespace text not null,
  run_id text not null,
  path text not null,
  attempt integer not null,
  seq integer not null,
  kind text not null,
  retry_at integer,
  ended_at integer not null,
  error text not null,
  output text,
  primary key (namespace, run_id, path, attempt)
) strict;

CREATE TABLE cairn_call (
  attempt integer not null,
  fence integer not null,
  interruptions integer not null,
  started_at integer not null,
  ended_at integer,
  at_most integer,
  input_tokens integer,
  output_tokens integer,
  cached_input_tokens integer,
  micro_dollars integer,
  namespace text not null,
  run_id text not null,
  call_id text not null,
  scope text not null,
  path text not null,
  step text not null,
  model text not null,
  state text not null,
  claim_token text not null,
  primary key (namespace, run_id, call_id)
) strict;

CREATE TABLE cairn_effect (
  namespace text not null,
  run_id text not null,
  path text not null,
  generation integer not null,
  operation text not null,
  idempotency_key text not null,
  payload_hash text not null,
  state text not null,
  claim_token text not null,
  sends integer not null,
  intent_at integer not null,
  settled_at integer,
  payload text,
  outcome text,
  primary key (namespace, run_id, path, generation)
) strict;

CREATE TABLE cairn_migration (
  version integer not null,
  name text not null,
  applied_at integer not null,
  primary key (version)
) strict;

CREATE TABLE cairn_rate (
  namespace text not null,
  workflow text not null,
  started_at integer not null,
  flow_key text not null,
  starts integer not null,
  primary key (namespace, workflow, started_at, flow_key)
) strict;

CREATE TABLE cairn_run (
  number integer not null,
  namespace text not null,
  run_id text not null,
  workflow text not null,
  version integer not null,
  plan_hash text not null,
  status text not null,
  seq integer not null,
  lease_owner text,
  fence integer not null,
  claim_token text,
  previous_until integer not null,
  wake_at integer,
  inbox integer not null,
  recoveries integer not null,
  interruptions integer not null,
  cancel_at integer,
  cancel_reason text,
  paused_at integer,
  priority integer not null,
  parent_run_id text,
  parent_path text,
  flow_key text,
  forked_from text,
  created_at integer not null,
  updated_at integer not null,
  input_hash text not null,
  cursor text,
  output text,
  failure text,
  parked text,
  input text,
  pending_since integer generated always as (case when status = 'pending' then updated_at end) stored,
  primary key (number),
  unique (namespace, run_id)
) strict;

CREATE TABLE cairn_schedule (
  namespace text not null,
  schedule_id text not null,
  workflow text not null,
  version integer not null,
  cron text not null,
  time_zone text not null,
  overlap text not null,
  catch_up text not null,
  next_at integer not null,
  last_at integer,
  last_run_id text,
  created_at integer not null,
  input text,
  primary key (namespace, schedule_id)
) strict;

CREATE TABLE cairn_signal (
  namespace text not null,
  run_id text not null,
  signal_id text not null,
  name text not null,
  payload_hash text not null,
  position integer not null,
  sent_at integer not null,
  consumed_by text,
  payload text,
  primary key (namespace, run_id, signal_id)
) strict;

CREATE TABLE cairn_spend (
  namespace text not null,
  kind text not null,
  name text not null,
  day integer not null,
  spent integer not null,
  reserved integer not null,
  calls integer not null,
  unknown integer not null,
  primary key (namespace, kind, name, day)
) strict;

CREATE TABLE cairn_step (
  run_number integer not null,
  seq integer not null,
  attempts integer not null,
  duration_ms integer not null,
  committed_at integer not null,
  scope text not null,
  path text not null,
  effect text not null,
  idempotency_key text,
  result text,
  primary key (run_number, scope, path)
) strict;

CREATE TABLE cairn_store (
  store_id text not null,
  primary key (store_id)
) strict;

CREATE TABLE cairn_wait (
  namespace text not null,
  run_id text not null,
  path text not null,
  seq integer not null,
  kind text not null,
  name text,
  wake_at integer,
  opened_at integer not null,
  state text not null,
  decided_at integer,
  data text,
  decision text,
  primary key (namespace, run_id, path)
) strict;

CREATE TABLE cairn_worker (
  worker_id text not null,
  until integer not null,
  primary key (worker_id)
) strict;

CREATE INDEX cairn_attempt_history on cairn_attempt (namespace, run_id, seq) where attempt >= 0;

CREATE INDEX cairn_attempt_output on cairn_attempt (namespace, ended_at) where kind = 'rejected' and output is not null;

CREATE INDEX cairn_call_begun on cairn_call (namespace, run_id) where state = 'begun';

CREATE INDEX cairn_call_timed on cairn_call (namespace, started_at);

CREATE INDEX cairn_run_children on cairn_run (namespace, parent_run_id, created_at, run_id) where parent_run_id is not null;

CREATE INDEX cairn_run_listed on cairn_run (namespace, created_at, run_id) where created_at >= 0;

CREATE INDEX cairn_run_owned on cairn_run (lease_owner) where lease_owner is not null;

CREATE INDEX cairn_run_parked on cairn_run (namespace, run_id) where status = 'review';

CREATE INDEX cairn_run_pending on cairn_run (namespace, priority desc, pending_since) where status = 'pending' and paused_at is null;

CREATE INDEX cairn_run_running on cairn_run (namespace, lease_owner) where status = 'running' and paused_at is null;

CREATE INDEX cairn_run_timed on cairn_run (namespace, wake_at) where status in ('sleeping', 'waiting', 'review') and wake_at is not null and paused_at is null and priority = 0;

CREATE INDEX cairn_run_timed_prior on cairn_run (namespace, wake_at) where status in ('sleeping', 'waiting', 'review') and wake_at is not null and paused_at is null and priority <> 0;

CREATE INDEX cairn_run_uncompleted on cairn_run (namespace, created_at, run_id) where status <> 'completed';

CREATE INDEX cairn_schedule_next on cairn_schedule (namespace, next_at, schedule_id);

CREATE INDEX cairn_signal_waiting on cairn_signal (namespace, run_id, position) where consumed_by is null;

CREATE INDEX cairn_step_history on cairn_step (run_number, seq) where scope <> '' and attempts >= 0;

CREATE INDEX cairn_step_many on cairn_step (run_number, scope, seq, path) where substr(scope, length(scope)) = '[';

CREATE INDEX cairn_wait_review on cairn_wait (namespace, opened_at, run_id, path) where kind = 'review';
