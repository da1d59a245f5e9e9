/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 *
 * `items.message` is the number of the message of a webhook job, whose row has no payload of its own. Numbers
 * of messages and consumers are never used again, because ids of jobs contain them.
 */
export const webhooks = `
alter table items add column message integer;

create table webhook_producers (
  id text primary key,
  name text not null,
  token text not null,
  xid text not null,
  created_at integer not null,
  changed_at integer not null
) strict, without rowid;
create index webhook_producers_created on webhook_producers (created_at, xid);

create table webhook_channels (
  number integer primary key autoincrement,
  id text not null unique,
  name text not null,
  token text not null,
  xid text not null,
  created_at integer not null,
  changed_at integer not null
) strict;
create index webhook_channels_created on webhook_channels (created_at, xid);

create table webhook_consumers (
  number integer primary key autoincrement,
  channel integer not null,
  id text not null,
  name text not null,
  token text not null,
  xid text not null,
  created_at integer not null,
  changed_at integer not null,
  callback_url text not null,
  type text not null,
  queue text not null unique,
  dead_queue text not null unique,
  unique (channel, id)
) strict;
create index webhook_consumers_created on webhook_consumers (channel, created_at, xid);

create table webhook_messages (
  number integer primary key autoincrement,
  channel integer not null,
  id text not null,
  xid text not null,
  producer text not null,
  content_type text not null,
  priority integer not null,
  status integer not null,
  created_at integer not null,
  dispatched_at integer,
  headers text,
  jobs text,
  prune_at integer,
  payload blob not null,
  unique (channel, id)
) strict;
create index webhook_messages_created on webhook_messages (channel, status, created_at, xid);
create index webhook_messages_waiting on webhook_messages (created_at, number) where status = 101;
create index webhook_messages_prune on webhook_messages (prune_at, number) where prune_at is not null;

create table webhook_scheduled (
  number integer primary key autoincrement,
  channel integer not null,
  id text not null,
  xid text not null,
  producer text not null,
  content_type text not null,
  priority integer not null,
  status integer not null,
  created_at integer not null,
  due_at integer not null,
  dispatched_at integer,
  headers text,
  payload blob not null,
  unique (channel, id)
) strict;
create index webhook_scheduled_created on webhook_scheduled (channel, status, created_at, xid);
create index webhook_scheduled_due on webhook_scheduled (due_at, number) where status = 101;
create index webhook_scheduled_next on webhook_scheduled (channel, due_at) where status = 101;

-- Messages by status: 101 and 102 as in webhook_messages, 201 and 202 for the states of webhook_scheduled.
create table webhook_message_counts (
  channel integer not null,
  status integer not null,
  n integer not null,
  primary key (channel, status)
) strict, without rowid;
`
