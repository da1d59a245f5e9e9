/**
 * Never edited once released: stores record its checksum. The comments inside the SQL cannot be changed
 * either. docs/internals/tables.md describes the tables.
 *
 * `due_at` is the next instant at which time alone changes the item (core/items/transitions.ts `dueAt`): one
 * index finds ended leases, expired items and due schedules. It is null for waiting letters, so a backlog of
 * millions of them adds nothing to that index.
 *
 * Only letters have a group, a `letter_state` (where scheduled differs from waiting) and `letter_redrives`
 * (limited like the counts by redrives). These columns repeat other columns, so that the indexes for listing
 * letters cover all columns that are needed to merge many of them into one page. `letter` is null as long as
 * nothing happened to the letter. `key_run` is the number by which the letter's key is found
 * (letters/key-runs.ts).
 */
const itemColumns = `
  queue_id integer not null,
  partition integer not null,
  id text not null,
  root_id text not null,
  source_id text,
  state integer not null,
  attempts integer not null,
  attempts_max integer not null,
  priority integer not null,
  kind text not null,
  encoding text not null,
  reference text not null,
  key blob,
  headers text,
  created_at integer not null,
  updated_at integer not null,
  expire_deadline integer not null,
  available_at integer,
  lease_holder text,
  lease_deadline integer,
  ended_at integer,
  died_at integer,
  due_at integer,
  failure text,
  origin text,
  letter_id text,
  redrives integer not null,
  group_id integer,
  letter_state integer,
  letter_redrives integer,
  redrive_at integer,
  history text,
  letter text,
  key_run integer,
  payload blob not null`

export const foundation = `
create table queues (
  id integer primary key autoincrement,
  name text not null unique,
  namespace text not null,
  partitions integer not null,
  dead_queue text,
  policy text not null,
  created_at integer not null,
  updated_at integer not null
) strict;

create index queues_dead_queue on queues (dead_queue) where dead_queue is not null;

create table items (${itemColumns}
) strict;

create unique index items_id on items (queue_id, partition, id);
create index items_ready on items (queue_id, partition, priority desc, id) where state = 0 and available_at is null;
create index items_due on items (due_at, id) where due_at is not null;
create unique index items_source on items (queue_id, source_id) where source_id is not null;
create index items_root on items (root_id) where source_id is not null or group_id is not null;
create index items_ended on items (queue_id, state, ended_at, id) where ended_at is not null;
create index items_died on items (queue_id, letter_state, died_at, id) where letter_state is not null;
create index items_group on items (group_id, letter_state, letter_redrives, died_at, id) where group_id is not null;
create index items_updated on items (queue_id, letter_state, updated_at, id) where letter_state is not null;
create index items_key on items (key_run, key, died_at, id) where key is not null and group_id is not null;
create index items_redrive on items (redrive_at, id) where redrive_at is not null;

create table archive (${itemColumns},
  archived_at integer not null
) strict;

create unique index archive_id on archive (queue_id, partition, id);
create index archive_root on archive (root_id);
create index archive_died on archive (queue_id, died_at, id) where died_at is not null;
create index archive_time on archive (queue_id, archived_at, id);

create table counts (
  queue_id integer not null,
  partition integer not null,
  waiting integer not null default 0,
  scheduled integer not null default 0,
  leased integer not null default 0,
  done integer not null default 0,
  dead integer not null default 0,
  discarded integer not null default 0,
  accepted integer not null default 0,
  completed integer not null default 0,
  dead_lettered integer not null default 0,
  dropped integer not null default 0,
  deleted integer not null default 0,
  forgotten integer not null default 0,
  archived integer not null default 0,
  purged integer not null default 0,
  created_sum_ms integer not null default 0,
  lease_sum_ms integer not null default 0,
  lease_sum_count integer not null default 0,
  last_id text not null default '',
  primary key (queue_id, partition)
) strict, without rowid;

create table groups (
  id integer primary key autoincrement,
  queue_id integer not null,
  fingerprint text not null,
  origin text not null,
  reason text not null,
  slug text not null,
  error_class text not null,
  title text not null,
  first_seen_at integer not null
) strict;

create unique index groups_fingerprint on groups (queue_id, fingerprint);

create table group_hours (
  group_id integer not null,
  hour integer not null,
  n integer not null,
  last_at integer not null,
  primary key (group_id, hour)
) strict, without rowid;

-- The first hour of which all arrivals are kept.
create table horizon (arrivals_from integer not null) strict;
insert into horizon values (-9007199254740991);

create table letter_counts (
  queue_id integer not null,
  group_id integer not null,
  state integer not null,
  redrives integer not null,
  n integer not null,
  primary key (queue_id, group_id, state, redrives)
) strict, without rowid;

create table open_minutes (
  queue_id integer not null,
  minute integer not null,
  n integer not null,
  primary key (queue_id, minute)
) strict, without rowid;

create table letter_edits (
  letter_id text not null,
  number integer not null,
  queue_id integer not null,
  at integer not null,
  actor text not null,
  key blob,
  headers text,
  payload blob not null
) strict;

create unique index letter_edits_number on letter_edits (letter_id, number);
create index letter_edits_queue on letter_edits (queue_id);

create table campaigns (
  id text primary key,
  version integer not null,
  state text not null,
  document text not null,
  sent_until integer not null default 0
) strict, without rowid;

create index campaigns_state on campaigns (state, id);

create table campaign_letters (
  campaign_id text not null,
  place integer not null,
  letter_id text not null,
  state integer not null,
  why text not null,
  at integer,
  primary key (campaign_id, place)
) strict, without rowid;

create unique index campaign_letters_letter on campaign_letters (campaign_id, letter_id);
create index campaign_letters_state on campaign_letters (campaign_id, state, place);

create table campaign_counts (
  campaign_id text not null,
  state integer not null,
  n integer not null,
  primary key (campaign_id, state)
) strict, without rowid;

create table produce_keys (
  queue_id integer not null,
  key text not null,
  partition integer not null,
  ids text not null,
  digest text not null,
  until integer not null,
  primary key (queue_id, key)
) strict, without rowid;

create index produce_keys_until on produce_keys (until);

create table audit (
  id integer primary key autoincrement,
  at integer not null,
  actor text not null,
  action text not null,
  target text not null,
  reason text not null,
  request_id text not null,
  details text not null
) strict;

create index audit_target on audit (target, id);
create index audit_action on audit (action, id);

create table locks (
  name text primary key,
  owner text not null,
  token integer not null,
  deadline integer
) strict, without rowid;
`
