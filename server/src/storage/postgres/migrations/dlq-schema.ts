/**
 * A part of migration 0001, never edited: dead letters for people who query the database directly. The schema
 * `dlq` has the views dlq_messages, dlq_messages_archive and dlq_summary and the procedure
 * archive_old_dlq_messages. All of them are defined in the schema `redrive`; `dlq` only refers to them, and
 * leaves another program's objects with these names as they are.
 */
const functions = `
-- The same as ksuidToUuid in core/ksuid.ts: the first 16 of the 20 bytes. Nine digits at a time fit
-- a bigint. Rows have it as a column; this is for ids that come from elsewhere.
create function redrive.ksuid_uuid(ksuid text) returns uuid
language plpgsql immutable strict parallel safe as $$
declare
  digits constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  nine bigint := 0;
  number numeric := 0;
begin
  for place in 1..27 loop
    nine := nine * 62 + strpos(digits, substr(ksuid, place, 1)) - 1;
    if place % 9 = 0 then
      number := number * 13537086546263552 + nine;
      nine := 0;
    end if;
  end loop;
  return (lpad(to_hex(div(number, 340282366920938463463374607431768211456)::bigint), 8, '0')
    || lpad(to_hex(mod(div(number, 79228162514264337593543950336), 4294967296)::bigint), 8, '0')
    || lpad(to_hex(mod(div(number, 18446744073709551616), 4294967296)::bigint), 8, '0')
    || lpad(to_hex(mod(div(number, 4294967296), 4294967296)::bigint), 8, '0'))::uuid;
end
$$;

-- The payload as JSON where it is JSON. The bytes are the truth; one that cannot be read breaks no page.
create function redrive.json_of(payload bytea) returns jsonb
language plpgsql immutable strict parallel safe as $$
begin
  return convert_from(payload, 'UTF8')::jsonb;
exception when others then
  return null;
end
$$;

-- A text in a JSON document. Escapes that PostgreSQL cannot keep in a text (NUL, unpaired surrogates)
-- are shown as U+FFFD.
create function redrive.text_in(document text, field text) returns text
language plpgsql immutable strict parallel safe as $$
begin
  return document::json ->> field;
exception when others then
  begin
    return regexp_replace(document, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})',
      '\\1\\\\ufffd', 'g')::json ->> field;
  exception when others then
    return null;
  end;
end
$$;

create function redrive.time_of(instant bigint) returns timestamptz
language sql immutable strict parallel safe as $$
  select timestamptz '1970-01-01 00:00:00+00' + instant * interval '1 microsecond'
$$;

-- What PostgreSQL says, in its user's language, to a commit where none is allowed: in a function none ever is.
create function redrive.refused_commit() returns text
language plpgsql as $$
declare
  said text;
begin
  commit;
  return null;
exception when invalid_transaction_termination then
  get stacked diagnostics said = message_text;
  return said;
end
$$;
`

function lettersOf(table: 'items_sourced' | 'archive'): string {
  return `select t.uuid as id,
    coalesce(redrive.text_in(t.origin, 'name'), '')::varchar(255) as original_topic,
    coalesce(nullif(redrive.text_in(t.failure, 'message'), ''), redrive.text_in(t.failure, 'reason'), '')
      as error_message,
    t.redrives as retry_count,
    coalesce(((redrive.text_in(q.policy, 'redrive'))::json ->> 'redrivesMax')::integer, 3) as max_retries,
    redrive.json_of(t.payload) as payload,
    (case t.state when 0 then 'PENDING' when 1 then 'PENDING' when 2 then 'RETRYING' when 3 then 'RESOLVED'
      else 'DEAD' end)::varchar(50) as status,
    redrive.time_of(t.died_at) as created_at,
    redrive.time_of(t.updated_at) as updated_at,
    redrive.time_of(substring(t.letter from '"lastRedriveAt":(-?[0-9]+)')::bigint) as last_retry_at
  from redrive.${table} t join redrive.queues q on q.id = t.queue_id
  where t.origin is not null and t.state <> 5`
}

const views = `
create view redrive.dlq_messages as ${lettersOf('items_sourced')};
create view redrive.dlq_messages_archive as ${lettersOf('archive')};

-- From the counts: costs the number of dead queues, however many letters they hold.
create view redrive.dlq_summary as
  select q.name as queue, coalesce(redrive.text_in(q.policy, 'letterClass'), '') as letter_class,
    coalesce(sum(c.waiting + c.scheduled), 0)::bigint as pending,
    coalesce(sum(c.leased), 0)::bigint as retrying,
    coalesce(sum(c.done), 0)::bigint as resolved,
    coalesce(sum(c.dead), 0)::bigint as dead,
    coalesce(sum(c.discarded), 0)::bigint as discarded,
    coalesce(sum(c.archived), 0)::bigint as archived
  from redrive.queues q left join redrive.counts c on c.queue_id = q.id
  where q.is_sourced or exists (select from redrive.queues u where u.dead_queue = q.name)
  group by q.id;
`

/**
 * Writes the counts to slot -2, which no server uses. DEAD letters of a class that is kept until a person
 * acts stay. Each state is searched separately, so that a run does not look again at the letters that stay.
 *
 * A batch ends after `p_batch_size` letters, or with the letter whose payload reaches 16 MiB, like the batch
 * of a server (`stepBytesMax`). Each batch uses the class that the queue keeps until the batch is committed
 * (`readWithClassLock` in queues/queue-locks.ts). Its audit row has the same fields as that of a server's
 * batch (letters/retention.ts).
 */
export const createProcedure = (columns: string) => `
create procedure redrive.archive_old_dlq_messages(p_retention_days integer default 30, p_batch_size integer default 1000)
language plpgsql as $$
declare
  cutoff bigint;
  -- A CALL by itself may commit after each batch. In a transaction, a string of several statements or a function
  -- it may not: then all of it is part of what it is called in.
  may_commit boolean;
  refusal text;
  dead_queue record;
  leaving text[];
  batch bigint;
  total bigint := 0;
begin
  if p_batch_size is null or p_retention_days is null
    or p_batch_size not between 1 and 100000 or p_retention_days not between 0 and 36500 then
    raise exception 'retention days must be from 0 to 36500 and the batch size from 1 to 100000';
  end if;
  -- Nothing tells whether it may but trying, and a commit that is refused cannot be gone on from. In a block with a
  -- handler it always is, so nothing is committed here, but for another reason where it would be allowed elsewhere.
  begin
    commit;
  exception when invalid_transaction_termination then
    get stacked diagnostics refusal = message_text;
  end;
  may_commit := refusal <> redrive.refused_commit();
  cutoff := (extract(epoch from now()) * 1000000)::bigint - p_retention_days * 86400000000;
  for dead_queue in
    select q.id, q.name from redrive.queues q where q.is_sourced order by q.id
  loop
    loop
      perform pg_advisory_xact_lock_shared(hashtext('redrive letter class'), dead_queue.id);
      -- What sees the database as it was before a change fails here, and does not go by the class that the queue had.
      if current_setting('transaction_isolation') <> 'read committed' then
        perform from redrive.queues q where q.id = dead_queue.id for share;
      end if;
      select case when redrive.text_in(q.policy, 'letterClass') = 'financial' then array['done', 'discarded']
        else array['done', 'dead', 'discarded'] end
      into leaving from redrive.queues q where q.id = dead_queue.id;
      exit when not found;
      with picked as materialized (
        select f.partition, f.id from (
          select r.partition, r.id, coalesce(sum(r.bytes) over (
            order by r.ended_at, r.id rows between unbounded preceding and 1 preceding), 0) as bytes_before
          from (values ('done', 3), ('dead', 4), ('discarded', 5)) as s(name, state)
          cross join lateral (
            select t.partition, t.id, t.ended_at, octet_length(t.payload) as bytes from redrive.items_sourced t
            where t.queue_id = dead_queue.id and t.state = s.state and t.ended_at < cutoff and t.origin is not null
            order by t.ended_at, t.id limit p_batch_size for update skip locked
          ) r
          where s.name = any (leaving)
          order by r.ended_at, r.id limit p_batch_size
        ) f where f.bytes_before < 16777216
      ), gone as (
        delete from redrive.items_sourced t using picked p
        where t.queue_id = dead_queue.id and t.partition = p.partition and t.id = p.id
        returning t.*
      ), kept as (
        insert into redrive.archive (${columns}, archived_at)
        select ${columns}, (extract(epoch from clock_timestamp()) * 1000000)::bigint from gone
      ), counted as (
        insert into redrive.counts as c (queue_id, partition, slot, done, dead, discarded, archived)
        select g.queue_id, g.partition, -2, -count(*) filter (where g.state = 3),
          -count(*) filter (where g.state = 4), -count(*) filter (where g.state = 5), count(*)
        from gone g group by g.queue_id, g.partition order by g.partition
        on conflict (queue_id, partition, slot) do update set done = c.done + excluded.done,
          dead = c.dead + excluded.dead, discarded = c.discarded + excluded.discarded,
          archived = c.archived + excluded.archived
      ), letters as materialized (
        select g.queue_id, g.group_id, g.state, least(g.redrives, 10) as redrives, -count(*) as n
        from gone g where g.group_id is not null group by 1, 2, 3, 4 order by 1, 2, 3, 4
      ), lettered as (
        insert into redrive.letter_counts as c (queue_id, group_id, state, redrives, slot, n)
        select l.queue_id, l.group_id, l.state, l.redrives, -2, l.n from letters l
        on conflict (queue_id, group_id, state, redrives, slot) do update set n = c.n + excluded.n
      ), letter_sums as (
        insert into redrive.letter_sums as c (queue_id, state, redrives, slot, n)
        select l.queue_id, l.state, l.redrives, -2, sum(l.n) from letters l group by 1, 2, 3 order by 1, 2, 3
        on conflict (queue_id, state, redrives, slot) do update set n = c.n + excluded.n
      ), slug_sums as (
        insert into redrive.slug_sums as c (slug, state, slot, n)
        select f.slug, l.state, -2, sum(l.n) from letters l join redrive.groups f on f.id = l.group_id
        group by 1, 2 order by 1, 2
        on conflict (slug, state, slot) do update set n = c.n + excluded.n
      ), opened as (
        insert into redrive.open_letters as c (queue_id, span, number, slot, n)
        select g.queue_id, s.span, g.died_at / 60000000 / s.span, -2, -count(*)
        from gone g cross join (values (1), (60)) as s(span)
        where g.group_id is not null and g.state = 4 and g.died_at / 60000000 >= (select minute from redrive.horizon)
        group by 1, 2, 3 order by 1, 2, 3
        on conflict (queue_id, span, number, slot) do update set n = c.n + excluded.n
      )
      select count(*) into batch from gone;
      total := total + batch;
      exit when batch = 0;
      insert into redrive.audit (at, actor, action, target, reason, request_id, details)
      values ((extract(epoch from clock_timestamp()) * 1000000)::bigint, 'database user ' || session_user,
        'letters.archive', dead_queue.name, 'archive_old_dlq_messages', '',
        json_build_object('states', leaving, 'endedBefore', cutoff, 'batchSize', p_batch_size, 'letters', batch)::text);
      if may_commit then
        commit;
      end if;
    end loop;
  end loop;
  raise notice 'Archived % dead letters older than % days', total, p_retention_days;
end
$$;
`

/** The schema `dlq` can belong to another program: existing objects stay as they are. */
const dlqObjects = `
do $$
declare
  missing text;
begin
  if not exists (select from pg_namespace where nspname = 'dlq') then
    create schema dlq;
  end if;
  foreach missing in array array['dlq_messages', 'dlq_messages_archive', 'dlq_summary'] loop
    if to_regclass('dlq.' || missing) is null then
      execute format('create view dlq.%I as select * from redrive.%I', missing, missing);
    else
      raise notice 'dlq.% exists already and stays; the letters are in redrive.%', missing, missing;
    end if;
  end loop;
  if to_regproc('dlq.archive_old_dlq_messages') is null then
    create procedure dlq.archive_old_dlq_messages(p_retention_days integer default 30, p_batch_size integer default 1000)
    language plpgsql as $body$
    begin
      call redrive.archive_old_dlq_messages(p_retention_days, p_batch_size);
    end
    $body$;
  else
    raise notice 'dlq.archive_old_dlq_messages exists already and stays; ours is in schema redrive';
  end if;
exception when insufficient_privilege then
  raise notice 'may not add to schema dlq; the views and the procedure are in schema redrive only';
end
$$;
`

export function dlqSchema(columns: string): string {
  return `${functions}${views}${createProcedure(columns)}${dlqObjects}`
}
