CREATE TABLE cairn_attempt (
  namespace text not null,
  run_id text not null,
  path text not null,
  attempt integer not null,
  kind text not null,
  retry_at integer,
  ended_at integer not null,
  error text not null,
  output text,
  primary key (namespace, run_id, path, attempt)
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

CREATE TABLE cairn_run (
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
  cancel_at integer,
  cancel_reason text,
  created_at integer not null,
  updated_at integer not null,
  input_hash text not null,
  cursor text,
  output text,
  failure text,
  parked text,
  input text,
  primary key (namespace, run_id)
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

CREATE TABLE cairn_step (
  namespace text not null,
  run_id text not null,
  path text not null,
  seq integer not null,
  effect text not null,
  idempotency_key text,
  attempts integer not null,
  duration_ms integer not null,
  committed_at integer not null,
  result text,
  primary key (namespace, run_id, path)
) strict;

CREATE TABLE cairn_store (
  store_id text not null,
  primary key (store_id)
) strict;

CREATE TABLE cairn_worker (
  worker_id text not null,
  until integer not null,
  primary key (worker_id)
) strict;

CREATE INDEX cairn_run_owned on cairn_run (lease_owner) where lease_owner is not null;

CREATE INDEX cairn_run_parked on cairn_run (namespace, run_id) where status = 'review';

CREATE INDEX cairn_run_pending on cairn_run (namespace, updated_at) where status = 'pending';

CREATE INDEX cairn_run_running on cairn_run (namespace, lease_owner) where status = 'running';

CREATE INDEX cairn_run_timed on cairn_run (namespace, wake_at) where status in ('sleeping', 'waiting') and wake_at is not null;

CREATE INDEX cairn_signal_waiting on cairn_signal (namespace, run_id, position) where consumed_by is null;
