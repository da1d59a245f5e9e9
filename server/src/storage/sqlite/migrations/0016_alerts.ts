/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 *
 * `group_lifecycles` has a row for each group about which a person decided. `group_notices` has a row for
 * each group that is new or regressed, until the alerts have read it: groups from before need no notice.
 */
export const alerts = `
create table group_lifecycles (
  group_id integer primary key,
  queue_id integer not null,
  state text not null,
  changed_at integer not null,
  muted_until integer,
  actor text not null,
  note text not null
) strict;
create index group_lifecycles_queue on group_lifecycles (queue_id);

create table group_notices (
  group_id integer primary key,
  queue_id integer not null,
  kind text not null,
  at integer not null
) strict;
create index group_notices_queue on group_notices (queue_id);

-- Rules and channels of alerts.
create table alert_configs (
  kind text not null,
  name text not null,
  namespace text not null,
  version integer not null,
  document text not null,
  secret text,
  primary key (kind, name)
) strict, without rowid;

create table alerts (
  id text primary key,
  namespace text not null,
  rule text not null,
  subject text not null,
  queue text,
  severity text not null,
  state text not null,
  is_tracked integer not null,
  version integer not null,
  started_at integer not null,
  ended_at integer,
  document text not null
) strict, without rowid;
create unique index alerts_tracked on alerts (rule, namespace, subject) where is_tracked = 1;
create index alerts_namespace on alerts (namespace, id);
create index alerts_rule on alerts (rule, id);
create index alerts_queue on alerts (queue, id) where queue is not null;
create index alerts_ended on alerts (ended_at) where ended_at is not null;
`
