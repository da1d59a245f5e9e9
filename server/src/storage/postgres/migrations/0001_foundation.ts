import { dlqSchema } from './dlq-schema.ts'

/**
 * Never edited once released: stores record its checksum. The comments inside the SQL cannot be changed
 * either. docs/internals/tables.md describes the tables.
 *
 * The table `items` has two partitions. `items_live` has the current work: it is small, changes all the time,
 * and is vacuumed often. `items_sourced` has the items with a source id (dead letters and imports): it can
 * hold tens of millions of rows that rarely change, and has the indexes that searching them needs. A row
 * never moves between them.
 *
 * States are numbers because the partial indexes contain them: 0 waiting, 1 scheduled, 2 leased, 3 done, 4
 * dead, 5 discarded. `due_at` is the next instant at which time alone changes the item
 * (core/items/transitions.ts `dueAt`), except for the end of a lease: that is in `lease_ends`, so that
 * leasing a row changes no index. `due_at` is null for waiting letters, so a backlog of millions of them
 * adds nothing to its index. `root_id` is null while it equals `id`, which is always true for nearly all
 * items. Columns that are mostly empty are null when empty: every value costs a little each time the row is
 * leased.
 *
 * JSON is stored as `text`, because jsonb refuses the NUL escapes that some error messages contain.
 */
const itemColumns = `
  queue_id integer not null,
  partition integer not null,
  created_at bigint not null,
  updated_at bigint not null,
  expire_deadline bigint not null,
  available_at bigint,
  due_at bigint,
  lease_deadline bigint,
  ended_at bigint,
  died_at bigint,
  attempts integer not null,
  attempts_max integer not null,
  priority integer not null,
  redrives integer not null,
  state smallint not null,
  is_sourced boolean not null,
  id text collate "C" not null,
  root_id text collate "C",
  source_id text collate "C",
  letter_id text collate "C",
  lease_holder text collate "C",
  kind text collate "C",
  encoding text collate "C",
  reference text collate "C",
  headers text collate "C",
  failure text collate "C",
  origin text collate "C",
  key bytea,
  payload bytea not null,
  group_id integer,
  uuid uuid,
  history text collate "C",
  letter text collate "C",
  redrive_at bigint`

const tables = `
create table redrive.queues (
  id integer generated always as identity primary key,
  name text collate "C" not null unique,
  namespace text collate "C" not null,
  partitions integer not null,
  -- Counts the changes: what a server remembers of a queue holds as long as this is the same.
  version integer not null default 1,
  -- Whether a row of it may be in items_sourced. Set with the first such row, never taken back.
  is_sourced boolean not null default false,
  dead_queue text collate "C",
  policy text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null
);
create index queues_dead_queue on redrive.queues (dead_queue) where dead_queue is not null;

-- Whoever puts a row into a partition locks its row here first: so ids increase across servers, and
-- nothing is put into a queue that is being deleted.
create table redrive.partitions (
  queue_id integer not null references redrive.queues (id),
  partition integer not null,
  last_id text collate "C" not null default '',
  primary key (queue_id, partition)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table redrive.items (${itemColumns}
) partition by list (is_sourced);

create table redrive.items_live partition of redrive.items for values in (false)
  -- Half of each page is kept free: there goes the version of a row that is leased.
  with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create table redrive.items_sourced partition of redrive.items for values in (true)
  with (fillfactor = 95, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.02);

-- Not unique: ids are made under the lock of their partition, and asking at each lease whether another
-- version of the row is in the way would cost more than anything else about it.
create index items_live_id on redrive.items_live (queue_id, partition, id);
-- No index of this table may name a column that a lease changes (state, attempts, updated_at, lease_…).
create index items_live_ready on redrive.items_live (queue_id, partition, (-priority), id)
  where available_at is null and ended_at is null;
create index items_live_due on redrive.items_live (due_at, id) where due_at is not null;
create index items_live_scheduled on redrive.items_live (queue_id, available_at, id) where available_at is not null;
create index items_live_ended on redrive.items_live (queue_id, ended_at, id) where ended_at is not null;

alter table redrive.items_sourced add constraint items_sourced_id primary key (queue_id, partition, id);
-- Here a lease, or a redrive, moves a row in other indexes anyway: it leaves this one, and nobody has to pass over it.
create index items_sourced_ready on redrive.items_sourced (queue_id, partition, (-priority), id)
  where state = 0 and available_at is null;
create index items_sourced_due on redrive.items_sourced (due_at, id) where due_at is not null;
create index items_sourced_scheduled on redrive.items_sourced (queue_id, available_at, id) where available_at is not null;
create index items_sourced_ended on redrive.items_sourced (queue_id, state, ended_at, id) where ended_at is not null;
-- The other way round, so that no index that begins with the queue looks as good for finding one.
create unique index items_sourced_source on redrive.items_sourced (source_id, queue_id) where source_id is not null;
-- What a letter is known by: the first 16 bytes of its root id. They begin with the time, so new ones go to the end.
create unique index items_sourced_uuid on redrive.items_sourced (uuid);
create index items_sourced_updated on redrive.items_sourced (queue_id, state, updated_at, id);
create index items_sourced_died on redrive.items_sourced (queue_id, state, died_at, id) where died_at is not null;
create index items_sourced_group on redrive.items_sourced (group_id, state, least(redrives, 10), died_at, id)
  where group_id is not null;
-- A key may be longer than what an index takes.
create index items_sourced_key on redrive.items_sourced (substring(key from 1 for 100), died_at, id)
  where key is not null;
create index items_sourced_redrive on redrive.items_sourced (redrive_at) where redrive_at is not null;

-- Of each batch of leases: which, and when they end. Ids of leases that were settled before stay in it.
-- They resemble each other: compressed, those of a few hundred fit into the row, and nothing is written elsewhere.
create table redrive.lease_ends (
  number bigint generated always as identity,
  queue_id integer not null,
  partition integer not null,
  deadline bigint not null,
  ids text[] collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000,
  toast.autovacuum_vacuum_cost_delay = 0);
create index lease_ends_deadline on redrive.lease_ends (deadline, number);

create table redrive.archive (${itemColumns},
  archived_at bigint not null,
  primary key (queue_id, partition, id)
);
create index archive_uuid on redrive.archive (uuid) where uuid is not null;
create index archive_archived on redrive.archive (queue_id, archived_at, id);
create index archive_created on redrive.archive (queue_id, created_at, id);
create index archive_updated on redrive.archive (queue_id, updated_at, id);
create index archive_died on redrive.archive (queue_id, died_at, id) where died_at is not null;

-- Several rows per partition, so that servers and kinds of work do not wait for each other's counts:
-- only their sums mean something. The sums of times are numeric because the rows that add and the
-- rows that take away are not the same ones, so neither is bounded.
create table redrive.counts (
  queue_id integer not null,
  partition integer not null,
  slot integer not null,
  waiting bigint not null default 0,
  scheduled bigint not null default 0,
  leased bigint not null default 0,
  done bigint not null default 0,
  dead bigint not null default 0,
  discarded bigint not null default 0,
  accepted bigint not null default 0,
  completed bigint not null default 0,
  dead_lettered bigint not null default 0,
  dropped bigint not null default 0,
  deleted bigint not null default 0,
  forgotten bigint not null default 0,
  archived bigint not null default 0,
  purged bigint not null default 0,
  created_sum_ms numeric not null default 0,
  lease_sum_ms numeric not null default 0,
  primary key (queue_id, partition, slot)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Letters of one cause. Of a row only first_seen_at changes, to an earlier time; it goes only with its queue.
create table redrive.groups (
  id integer generated always as identity primary key,
  queue_id integer not null,
  fingerprint text collate "C" not null,
  origin text collate "C" not null,
  reason text collate "C" not null,
  slug text collate "C" not null,
  error_class text collate "C" not null,
  title text collate "C" not null,
  first_seen_at bigint not null,
  unique (queue_id, fingerprint)
);

-- In slots, like the counts. Redrives from 10 on are counted together.
create table redrive.letter_counts (
  queue_id integer not null,
  group_id integer not null,
  state smallint not null,
  redrives smallint not null,
  slot integer not null,
  n bigint not null,
  primary key (queue_id, group_id, state, redrives, slot)
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The sums of these over the groups of a queue, and over the groups of a slug in all queues.
create table redrive.letter_sums (
  queue_id integer not null,
  state smallint not null,
  redrives smallint not null,
  slot integer not null,
  n bigint not null,
  primary key (queue_id, state, redrives, slot)
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create table redrive.slug_sums (
  slug text collate "C" not null,
  state smallint not null,
  slot integer not null,
  n bigint not null,
  primary key (slug, state, slot)
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Open letters by when they died: of each minute (span 1) and each hour (span 60). Of what died before the
-- horizon nothing is kept.
create table redrive.open_letters (
  queue_id integer not null,
  span smallint not null,
  number integer not null,
  slot integer not null,
  n bigint not null,
  primary key (queue_id, span, number, slot)
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create table redrive.horizon (minute integer not null);
insert into redrive.horizon values (-2147483648);

-- Letters that a group got, by the hour in which they died or failed anew. Kept for a week, and the last one for longer.
create table redrive.group_hours (
  queue_id integer not null,
  group_id integer not null,
  hour integer not null,
  slot integer not null,
  n bigint not null,
  last_at bigint not null,
  primary key (queue_id, group_id, hour, slot)
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

-- Edited versions of a letter. What they leave as it is they have, too.
create table redrive.letter_edits (
  letter_id text collate "C" not null,
  number integer not null,
  queue_id integer not null,
  at bigint not null,
  actor text collate "C" not null,
  headers text collate "C",
  key bytea,
  payload bytea not null,
  primary key (letter_id, number)
);
create index letter_edits_queue on redrive.letter_edits (queue_id);

create table redrive.campaigns (
  id text collate "C" primary key,
  version integer not null,
  state text collate "C" not null,
  document text collate "C" not null,
  -- Letters of its set up to this place that are pending by their own row are sent: a step writes one row, not each.
  sent_until integer not null default 0
);
create index campaigns_state on redrive.campaigns (state, id);

-- The states are numbered as in campaign-store.ts: 0 pending, 1 sent, 2 resolved, 3 failed, 4 unknown,
-- 5 skipped, 6 discarded.
create table redrive.campaign_letters (
  campaign_id text collate "C" not null,
  place integer not null,
  letter_id text collate "C" not null,
  state smallint not null,
  why text collate "C" not null default '',
  at bigint,
  primary key (place, campaign_id)
);
-- No two of its indexes have a column in common at the same place, or one may be taken for the other while the
-- table is empty: so the campaign stands second above, and the place is another type below.

create unique index campaign_letters_letter on redrive.campaign_letters (letter_id, campaign_id);
create index campaign_letters_state on redrive.campaign_letters (campaign_id, state, (place::int8));

create table redrive.campaign_counts (
  campaign_id text collate "C" not null,
  state smallint not null,
  slot integer not null,
  n bigint not null,
  primary key (campaign_id, state, slot)
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table redrive.produce_keys (
  queue_id integer not null,
  key text collate "C" not null,
  partition integer not null,
  ids text not null,
  digest text not null,
  until bigint not null,
  primary key (queue_id, key)
);
create index produce_keys_until on redrive.produce_keys (until);

create table redrive.audit (
  id bigint generated always as identity primary key,
  at bigint not null,
  actor text collate "C" not null,
  action text collate "C" not null,
  target text collate "C" not null,
  reason text collate "C" not null,
  request_id text collate "C" not null,
  details text collate "C" not null
);
create index audit_target on redrive.audit (target, id);
create index audit_action on redrive.audit (action, id);

-- The row stays when a lock is released (deadline null): its token must never start again.
create table redrive.locks (
  name text collate "C" primary key,
  owner text collate "C" not null,
  token bigint not null,
  deadline bigint
);

-- Undoes a statement that met a change made between what it saw and what it wrote; it is run again.
create function redrive.expect_rows(written bigint, expected bigint) returns bigint language plpgsql as $$
begin
  if written <> expected then
    raise exception using errcode = 'RD001', message = 'items changed while they were being written';
  end if;
  return written;
end
$$;
`

export const columnList = itemColumns
  .split('\n')
  .flatMap((line) => line.trim().split(' ')[0] || [])
  .join(', ')

export const foundation = `${tables}${dlqSchema(columnList)}`
