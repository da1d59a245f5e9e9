/** Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables. */
export const deliveries = `
create table redrive.webhook_deliveries (
  consumer integer primary key,
  version integer not null,
  changed_at bigint not null,
  document text collate "C" not null,
  secrets text collate "C"
) with (fillfactor = 70);
create index webhook_deliveries_changed on redrive.webhook_deliveries (changed_at);

create table redrive.webhook_attempts (
  number bigint generated always as identity primary key,
  consumer integer not null,
  job text collate "C" not null,
  ordinal integer not null,
  started_at bigint not null,
  latency_us bigint not null,
  address text collate "C",
  status integer,
  content_type text collate "C",
  body bytea,
  is_truncated smallint not null,
  failure text collate "C"
);
create index webhook_attempts_consumer on redrive.webhook_attempts (consumer, number);
create index webhook_attempts_job on redrive.webhook_attempts (job, number);

create table redrive.webhook_minutes (
  consumer integer not null,
  minute bigint not null,
  writer text collate "C" not null,
  delivered bigint not null,
  failed bigint not null,
  latencies text collate "C" not null,
  primary key (consumer, minute, writer)
) with (fillfactor = 70);
create index webhook_minutes_minute on redrive.webhook_minutes (minute);
`
