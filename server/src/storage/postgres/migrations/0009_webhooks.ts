/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 *
 * `items.message` is the number of the message of a webhook job, whose row has no payload of its own. Numbers
 * of messages and consumers are never used again, because ids of jobs contain them.
 */
const text = 'text collate "C" not null'
const entity = `
  id ${text},
  name ${text},
  token ${text},
  xid ${text},
  created_at bigint not null,
  changed_at bigint not null`
const message = `
  number bigint generated always as identity primary key,
  channel integer not null,
  id ${text},
  xid ${text},
  producer ${text},
  content_type ${text},
  priority integer not null,
  status smallint not null,
  created_at bigint not null,
  dispatched_at bigint,
  headers text collate "C"`

export const webhooks = `
alter table redrive.items add column message bigint;

create table redrive.webhook_producers (${entity},
  primary key (id)
);
create index webhook_producers_created on redrive.webhook_producers (created_at, xid);

create table redrive.webhook_channels (
  number integer generated always as identity primary key,${entity},
  unique (id)
);
create index webhook_channels_created on redrive.webhook_channels (created_at, xid);

create table redrive.webhook_consumers (
  number integer generated always as identity primary key,
  channel integer not null,${entity},
  callback_url ${text},
  type ${text},
  queue ${text} unique,
  dead_queue ${text} unique,
  unique (channel, id)
);
create index webhook_consumers_created on redrive.webhook_consumers (channel, created_at, xid);

create table redrive.webhook_messages (${message},
  jobs text collate "C",
  prune_at bigint,
  payload bytea not null,
  unique (channel, id)
) with (fillfactor = 90);
create index webhook_messages_created on redrive.webhook_messages (channel, status, created_at, xid);
create index webhook_messages_waiting on redrive.webhook_messages (created_at, number) where status = 101;
create index webhook_messages_prune on redrive.webhook_messages (prune_at, number) where prune_at is not null;

create table redrive.webhook_scheduled (${message},
  due_at bigint not null,
  payload bytea not null,
  unique (channel, id)
);
create index webhook_scheduled_created on redrive.webhook_scheduled (channel, status, created_at, xid);
create index webhook_scheduled_due on redrive.webhook_scheduled (due_at, number) where status = 101;
create index webhook_scheduled_next on redrive.webhook_scheduled (channel, due_at) where status = 101;

-- Messages by status: 101 and 102 as in webhook_messages, 201 and 202 for the states of webhook_scheduled.
-- In slots, like the other counts: only their sums mean something.
create table redrive.webhook_message_counts (
  channel integer not null,
  status smallint not null,
  slot integer not null,
  n bigint not null,
  primary key (channel, status, slot)
) with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
`
