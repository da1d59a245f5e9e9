/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the table.
 *
 * `dlq.dlq_summary` has a row per webhook consumer from here on. Its columns have the names consumerId,
 * consumerName, channelId and channelName without quotes, which PostgreSQL stores in lower case. The counts
 * per dead queue, which it had before, are in `dlq.dlq_queues`. Another program's objects stay as they are.
 */
export const messagePruning = `
create table redrive.webhook_configuration (
  id integer primary key check (id = 1),
  checksum text collate "C" not null,
  changed_at bigint not null
);

-- From the counts: costs the number of consumers, however many dead jobs they have.
create view redrive.dlq_consumers as
  select k.id::varchar(255) as consumerId, k.name::varchar(255) as consumerName,
    c.id::varchar(255) as channelId, c.name::varchar(255) as channelName,
    coalesce((select sum(n.waiting + n.scheduled + n.dead) from redrive.queues q
      join redrive.counts n on n.queue_id = q.id where q.name = k.dead_queue), 0)::bigint as dead_count,
    statement_timestamp() as last_checked_at
  from redrive.webhook_consumers k join redrive.webhook_channels c on c.number = k.channel;

do $$
begin
  if exists (
    select from pg_depend d join pg_rewrite r on r.oid = d.objid and d.classid = 'pg_rewrite'::regclass
    where r.ev_class = to_regclass('dlq.dlq_summary') and d.refobjid = 'redrive.dlq_summary'::regclass
      and d.refclassid = 'pg_class'::regclass
  ) and to_regclass('dlq.dlq_queues') is null then
    alter view dlq.dlq_summary rename to dlq_queues;
  end if;
  if to_regclass('dlq.dlq_summary') is null then
    create view dlq.dlq_summary as select * from redrive.dlq_consumers;
  else
    raise notice 'dlq.dlq_summary exists already and stays; the counts of consumers are in redrive.dlq_consumers';
  end if;
exception when insufficient_privilege or invalid_schema_name then
  raise notice 'may not change schema dlq; the counts of consumers are in redrive.dlq_consumers';
end
$$;
`
