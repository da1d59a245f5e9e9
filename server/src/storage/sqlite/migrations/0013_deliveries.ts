/** Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables. */
export const deliveries = `
create table webhook_deliveries (
  consumer integer primary key,
  version integer not null,
  changed_at integer not null,
  document text not null,
  secrets text
) strict;
create index webhook_deliveries_changed on webhook_deliveries (changed_at);

create table webhook_attempts (
  number integer primary key autoincrement,
  consumer integer not null,
  job text not null,
  ordinal integer not null,
  started_at integer not null,
  latency_us integer not null,
  address text,
  status integer,
  content_type text,
  body blob,
  is_truncated integer not null,
  failure text
) strict;
create index webhook_attempts_consumer on webhook_attempts (consumer, number);
create index webhook_attempts_job on webhook_attempts (job, number);

create table webhook_minutes (
  consumer integer not null,
  minute integer not null,
  writer text not null,
  delivered integer not null,
  failed integer not null,
  latencies text not null,
  primary key (consumer, minute, writer)
) strict, without rowid;
create index webhook_minutes_minute on webhook_minutes (minute);
`
