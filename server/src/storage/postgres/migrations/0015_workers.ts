/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 * Rows of workers change every few seconds, so their pages have space for new versions, and no column that
 * changes is in an index.
 */
export const workers = `
create table redrive.workers (
  namespace text collate "C" not null,
  type text collate "C" not null,
  instance text collate "C" not null,
  source text collate "C" not null,
  status text collate "C" not null,
  first_seen_at bigint not null,
  last_seen_at bigint not null,
  last_seen_tick bigint not null,
  status_since bigint not null,
  sent_at bigint,
  last_message_at bigint,
  idle_from bigint,
  lag bigint,
  retries text collate "C" not null,
  primary key (namespace, type, instance)
) with (fillfactor = 50);

create table redrive.observation_clocks (
  name text collate "C" primary key,
  started_at bigint not null,
  observed_at bigint not null,
  paused_us bigint not null
) with (fillfactor = 50);

create table redrive.worker_retries (
  namespace text collate "C" not null,
  type text collate "C" not null,
  error text collate "C" not null,
  count bigint not null,
  primary key (namespace, type, error)
) with (fillfactor = 70);

create table redrive.event_totals (
  name text collate "C" not null,
  label text collate "C" not null,
  count bigint not null,
  primary key (name, label)
) with (fillfactor = 70);
`
