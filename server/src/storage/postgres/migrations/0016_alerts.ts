/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 *
 * `group_lifecycles` has a row for each group about which a person decided. `group_notices` has a row for
 * each group that is new or regressed, until the alerts have read it: groups from before need no notice.
 */
export const alerts = `
create table redrive.group_lifecycles (
  group_id integer primary key,
  queue_id integer not null,
  state text collate "C" not null,
  changed_at bigint not null,
  muted_until bigint,
  actor text collate "C" not null,
  note text collate "C" not null
) with (fillfactor = 70);
create index group_lifecycles_queue on redrive.group_lifecycles (queue_id);

create table redrive.group_notices (
  group_id integer primary key,
  queue_id integer not null,
  kind text collate "C" not null,
  at bigint not null
) with (fillfactor = 70);
create index group_notices_queue on redrive.group_notices (queue_id);

create table redrive.alert_configs (
  kind text collate "C" not null,
  name text collate "C" not null,
  namespace text collate "C" not null,
  version integer not null,
  document text collate "C" not null,
  secret text collate "C",
  primary key (kind, name)
);

create table redrive.alerts (
  id text collate "C" primary key,
  namespace text collate "C" not null,
  rule text collate "C" not null,
  subject text collate "C" not null,
  queue text collate "C",
  severity text collate "C" not null,
  state text collate "C" not null,
  is_tracked boolean not null,
  version integer not null,
  started_at bigint not null,
  ended_at bigint,
  document text collate "C" not null
) with (fillfactor = 70);
create unique index alerts_tracked on redrive.alerts (rule, namespace, subject) where is_tracked;
create index alerts_namespace on redrive.alerts (namespace, id);
create index alerts_rule on redrive.alerts (rule, id);
create index alerts_queue on redrive.alerts (queue, id) where queue is not null;
create index alerts_ended on redrive.alerts (ended_at) where ended_at is not null;
`
