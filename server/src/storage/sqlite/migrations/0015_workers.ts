/** Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables. */
export const workers = `
create table workers (
  namespace text not null,
  type text not null,
  instance text not null,
  source text not null,
  status text not null,
  first_seen_at integer not null,
  last_seen_at integer not null,
  last_seen_tick integer not null,
  status_since integer not null,
  sent_at integer,
  last_message_at integer,
  idle_from integer,
  lag integer,
  retries text not null,
  primary key (namespace, type, instance)
) strict, without rowid;

create table observation_clocks (
  name text primary key,
  started_at integer not null,
  observed_at integer not null,
  paused_us integer not null
) strict, without rowid;

create table worker_retries (
  namespace text not null,
  type text not null,
  error text not null,
  count integer not null,
  primary key (namespace, type, error)
) strict, without rowid;

create table event_totals (
  name text not null,
  label text not null,
  count integer not null,
  primary key (name, label)
) strict, without rowid;
`
