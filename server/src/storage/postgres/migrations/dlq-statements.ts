/**
 * Migration 0002, never edited: the statements of existing programs on dlq.dlq_messages. They claim messages
 * with `select … for update skip locked`, update their status, and insert messages in their own transaction.
 * See docs/decisions/0020-sql-statements-on-letters.md.
 *
 * - The view reads one table, so that `for update` locks only the row of the letter. A join with `queues`
 *   would lock the queue too, and a second claim would skip all its letters.
 * - Triggers replace the insert and the update. They change the counts, and write the audit row, in the
 *   transaction of the caller. They belong to the owner of the schema: a caller needs only permissions on
 *   the view.
 * - Counts go to slots -3 to -18, which no server uses, so that callers seldom wait for each other.
 */
import { columnList } from './0001_foundation.ts'
import { createProcedure } from './dlq-schema.ts'

const view = `
create or replace view redrive.dlq_messages as select t.uuid as id,
    coalesce(redrive.text_in(t.origin, 'name'), '')::varchar(255) as original_topic,
    coalesce(nullif(redrive.text_in(t.failure, 'message'), ''), redrive.text_in(t.failure, 'reason'), '')
      as error_message,
    t.redrives as retry_count,
    coalesce((select ((redrive.text_in(q.policy, 'redrive'))::json ->> 'redrivesMax')::integer
      from redrive.queues q where q.id = t.queue_id), 3) as max_retries,
    redrive.json_of(t.payload) as payload,
    (case t.state when 0 then 'PENDING' when 1 then 'PENDING' when 2 then 'RETRYING' when 3 then 'RESOLVED'
      else 'DEAD' end)::varchar(50) as status,
    redrive.time_of(t.died_at) as created_at,
    redrive.time_of(t.updated_at) as updated_at,
    redrive.time_of(substring(t.letter from '"lastRedriveAt":(-?[0-9]+)')::bigint) as last_retry_at
  from redrive.items_sourced t
  where t.origin is not null and t.state <> 5;
`

const counting = `
create function redrive.instant_of(at timestamptz) returns bigint
language sql immutable strict parallel safe as $$
  select (extract(epoch from at) * 1000000)::bigint
$$;

-- Adds a letter to the counts (sign 1), or takes it out (sign -1), as the servers do (counts/counts.ts).
create function redrive.count_letter(t redrive.items_sourced, sign integer, accepted_by integer) returns void
language plpgsql as $$
declare
  own_slot constant integer := -3 - pg_backend_pid() % 16;
  counted_redrives constant smallint := least(t.redrives, 10);
begin
  insert into redrive.counts as c (queue_id, partition, slot, waiting, scheduled, leased, done, dead, accepted,
    created_sum_ms, lease_sum_ms)
  values (t.queue_id, t.partition, own_slot, sign * (t.state = 0)::integer, sign * (t.state = 1)::integer,
    sign * (t.state = 2)::integer, sign * (t.state = 3)::integer, sign * (t.state = 4)::integer, accepted_by,
    case when t.state in (0, 2) then sign * (t.created_at / 1000) else 0 end,
    case when t.state = 2 then sign * (t.lease_deadline / 1000) else 0 end)
  on conflict (queue_id, partition, slot) do update set waiting = c.waiting + excluded.waiting,
    scheduled = c.scheduled + excluded.scheduled, leased = c.leased + excluded.leased,
    done = c.done + excluded.done, dead = c.dead + excluded.dead, accepted = c.accepted + excluded.accepted,
    created_sum_ms = c.created_sum_ms + excluded.created_sum_ms,
    lease_sum_ms = c.lease_sum_ms + excluded.lease_sum_ms;
  if t.group_id is null then
    return;
  end if;
  insert into redrive.letter_counts as c (queue_id, group_id, state, redrives, slot, n)
  values (t.queue_id, t.group_id, t.state, counted_redrives, own_slot, sign)
  on conflict (queue_id, group_id, state, redrives, slot) do update set n = c.n + excluded.n;
  insert into redrive.letter_sums as c (queue_id, state, redrives, slot, n)
  values (t.queue_id, t.state, counted_redrives, own_slot, sign)
  on conflict (queue_id, state, redrives, slot) do update set n = c.n + excluded.n;
  insert into redrive.slug_sums as c (slug, state, slot, n)
  select g.slug, t.state, own_slot, sign from redrive.groups g where g.id = t.group_id
  on conflict (slug, state, slot) do update set n = c.n + excluded.n;
  if t.state in (0, 1, 4) then
    insert into redrive.open_letters as c (queue_id, span, number, slot, n)
    select t.queue_id, s.span, t.died_at / 60000000 / s.span, own_slot, sign from (values (1), (60)) as s(span)
    where t.died_at / 60000000 >= (select minute from redrive.horizon) order by s.span
    on conflict (queue_id, span, number, slot) do update set n = c.n + excluded.n;
  end if;
end
$$;
`

const update = `
-- Only a retry that was started here can be ended here: the others belong to a server, or to a consumer.
create function redrive.update_dlq_message() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  before redrive.items_sourced;
  after redrive.items_sourced;
  facts json;
  records text[];
  is_own_retry boolean;
  action text;
  at constant bigint := redrive.instant_of(clock_timestamp());
  actor constant text := 'database user ' || session_user;
begin
  if (new.id, new.original_topic, new.error_message, new.max_retries, new.created_at)
      is distinct from (old.id, old.original_topic, old.error_message, old.max_retries, old.created_at)
    or new.payload is distinct from old.payload then
    raise exception 'message %: only status, retry_count and last_retry_at can be changed', old.id
      using errcode = 'feature_not_supported';
  end if;
  if new.retry_count not in (old.retry_count, old.retry_count + 1) then
    raise exception 'message %: retry_count is %, and can only become % or %, not %', old.id, old.retry_count,
      old.retry_count, old.retry_count + 1, new.retry_count using errcode = 'check_violation';
  end if;
  select * into before from redrive.items_sourced t where t.uuid = old.id for update;
  if not found or before.redrives <> old.retry_count
    or (case before.state when 0 then 'PENDING' when 1 then 'PENDING' when 2 then 'RETRYING' when 3 then 'RESOLVED'
      else 'DEAD' end) <> old.status then
    raise exception 'message % changed at the same time; repeat the transaction', old.id
      using errcode = 'serialization_failure';
  end if;
  facts := coalesce(before.letter, '{"requeues":0,"redrives":[],"discardReason":""}')::json;
  records := array(select e::text from json_array_elements(facts -> 'redrives') e limit 100);
  is_own_retry := before.state = 2 and facts #>> '{redrives,0,outcome}' is null
    and coalesce(facts #>> '{redrives,0,target,name}' = 'dlq.dlq_messages', false);
  if old.status not in ('PENDING', 'RETRYING') or (before.state = 2 and not is_own_retry) then
    raise exception 'message % is %, and its retry was not started by an update of dlq.dlq_messages', old.id, old.status
      using errcode = 'object_not_in_prerequisite_state';
  end if;

  after := before;
  after.updated_at := at;
  after.redrives := new.retry_count;
  after.redrive_at := null;
  after.available_at := null;
  after.due_at := null;
  after.lease_holder := null;
  after.lease_deadline := null;
  after.ended_at := null;
  if new.status = 'RETRYING' then
    if old.status <> 'PENDING' then
      raise exception 'message % is RETRYING already', old.id using errcode = 'object_not_in_prerequisite_state';
    end if;
    action := 'letter.redrive';
    after.state := 2;
    after.lease_holder := 'redrive in progress';
    -- The retry ends when the caller updates the status again.
    after.lease_deadline := 9007199254740991;
    records := array[format('{"number":%s,"at":%s,"actor":%s,"campaign":null,"target":{"kind":"http","name":"dlq.dlq_messages","partition":null,"id":%s},"edit":null,"outcome":null,"endedAt":null}',
      coalesce((facts #>> '{redrives,0,number}')::bigint, 0) + 1, at, to_json(actor)::text, to_json(old.id::text)::text)]
      || records[1:99];
  else
    action := 'letter.redrive-end';
    after.state := case new.status when 'PENDING' then 0 when 'RESOLVED' then 3 when 'DEAD' then 4 end;
    if after.state is null then
      raise exception 'status % is none of PENDING, RETRYING, RESOLVED and DEAD', new.status
        using errcode = 'check_violation';
    end if;
    if after.state <> 0 then
      after.ended_at := at;
    end if;
    if is_own_retry then
      records[1] := regexp_replace(records[1], '"outcome":null,"endedAt":null}$',
        format('"outcome":"%s","endedAt":%s}', case new.status when 'RESOLVED' then 'resolved' else 'failed' end, at));
    end if;
  end if;
  after.letter := format('{"requeues":%s,"lastRedriveAt":%s,"redrives":[%s],"nextRedriveAt":null,"discardReason":%s%s%s}',
    (facts ->> 'requeues')::bigint + (new.status = 'RETRYING')::integer,
    coalesce(redrive.instant_of(new.last_retry_at)::text, 'null'), array_to_string(records, ','), facts -> 'discardReason',
    ',"discardCampaign":' || (facts -> 'discardCampaign')::text, ',"restoredAt":' || (facts -> 'restoredAt')::text);

  update redrive.items_sourced t set state = after.state, updated_at = after.updated_at, redrives = after.redrives,
    redrive_at = after.redrive_at, available_at = after.available_at, due_at = after.due_at,
    lease_holder = after.lease_holder, lease_deadline = after.lease_deadline, ended_at = after.ended_at,
    letter = after.letter
  where t.uuid = old.id;
  perform redrive.count_letter(before, -1, 0);
  perform redrive.count_letter(after, 1, 0);
  insert into redrive.audit (at, actor, action, target, reason, request_id, details)
  values (at, actor, action, coalesce(before.root_id, before.id), 'update of dlq.dlq_messages', '',
    json_build_object('from', old.status, 'to', new.status, 'redrives', new.retry_count)::text);
  new.updated_at := redrive.time_of(at);
  return new;
end
$$;
create trigger update_dlq_message instead of update on redrive.dlq_messages
  for each row execute function redrive.update_dlq_message();

create function redrive.delete_dlq_message() returns trigger
language plpgsql as $$
begin
  raise exception 'message % cannot be deleted with SQL', old.id using errcode = 'feature_not_supported',
    hint = 'Discard it with DELETE /api/v1/dlq/messages/{id}, or archive ended messages with dlq.archive_old_dlq_messages().';
end
$$;
create trigger delete_dlq_message instead of delete on redrive.dlq_messages
  for each row execute function redrive.delete_dlq_message();
`

const insert = `
-- The next id of a partition, made as in core/ksuid.ts.
create function redrive.next_ksuid(last_id text, at bigint) returns text
language plpgsql volatile as $$
declare
  digits constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  rest numeric := (at / 1000000 - 1400000000)::numeric * 340282366920938463463374607431768211456
    + (at % 1000000)::numeric * 340282366920938463463374607431768;
  head text := '';
  last_head constant text := substr(last_id, 1, 16);
  place integer;
begin
  for i in 1..27 loop
    head := substr(digits, mod(rest, 62)::integer + 1, 1) || head;
    rest := div(rest, 62);
  end loop;
  head := substr(head, 1, 16);
  if head collate "C" <= last_head collate "C" then
    head := last_head;
  end if;
  -- Adds one: the last digit that is not the highest grows, and the digits after it start again.
  place := length(rtrim(head, 'z'));
  head := substr(head, 1, place - 1) || substr(digits, strpos(digits, substr(head, place, 1)) + 1, 1)
    || repeat('0', 16 - place);
  for i in 1..11 loop
    head := head || substr(digits, floor(random() * 62)::integer + 1, 1);
  end loop;
  return head;
end
$$;

-- The dead queue of a topic: that of the queue with this name, or dlq_messages, which is created here.
create function redrive.dead_queue_for(topic text, at bigint) returns integer
language plpgsql as $$
declare
  found_id integer;
begin
  select d.id into found_id from redrive.queues q join redrive.queues d on d.name = q.dead_queue where q.name = topic;
  if found_id is not null then
    return found_id;
  end if;
  insert into redrive.queues (name, namespace, partitions, dead_queue, policy, created_at, updated_at)
  values ('dlq_messages', '_system', 1, null, '{"leaseUs":60000000,"expireUs":86400000000,"attemptsMax":0,"onDead":"delete","retry":{"kind":"fixed","delayUs":0,"jitter":0},"keepDoneUs":0,"isPaused":false,"letterClass":"standard","redrive":{"mode":"manual","redrivesMax":3,"backoff":{"kind":"exponential","delayUsMin":60000000,"delayUsMax":3600000000,"jitter":0.2}},"reference":""}', at, at)
  on conflict (name) do nothing returning id into found_id;
  if found_id is not null then
    insert into redrive.partitions (queue_id, partition) values (found_id, 0);
    return found_id;
  end if;
  select q.id into found_id from redrive.queues q where q.name = 'dlq_messages' and q.dead_queue is null;
  if found_id is null then
    raise exception 'topic % has no dead queue, and queue dlq_messages has a dead queue itself', topic
      using hint = 'Create a queue with the name of the topic and a dead queue.';
  end if;
  return found_id;
end
$$;

-- The group of a message. It is the group that core/cause.ts finds if numbers are the only variable parts of the
-- message. Otherwise the message may get another group than the same message that a server captures.
create function redrive.group_for(queue integer, topic text, message text, at bigint) returns integer
language plpgsql as $$
declare
  found_id integer;
  group_count bigint;
  cause_slug text;
  cause_title text;
  cause_class text := '';
  fold text := '';
  cause_hash text;
  head text := btrim(left(message, 512), E' \\t\\n\\r');
begin
  head := case when strpos(head, ':') > 0 then split_part(head, ':', 1) else split_part(head, ' ', 1) end;
  -- A number stays only in a code, such as HTTP 503 and E11000: a slug that differs for every message groups nothing.
  if head !~ '^[A-Z]+[ _-]?[0-9]{1,5}$' and head !~* '^(http|status|code|error|err|errno|exit|signal)[ _-]?[0-9]{1,5}$' then
    head := regexp_replace(head, '[0-9]+', ' ', 'g');
  end if;
  cause_slug := coalesce(nullif(left(btrim(regexp_replace(lower(head), '[^a-z0-9]+', '_', 'g'), '_'), 64), ''), 'unknown');
  cause_title := regexp_replace(left(message, 2000), '"[^"]{0,200}"', '<text>', 'g');
  cause_title := regexp_replace(cause_title, '\\y[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\y', '<n>', 'gi');
  cause_title := regexp_replace(cause_title, '\\y[0-9A-Za-z]*[0-9][0-9A-Za-z]{11,}\\y', '<n>', 'g');
  cause_title := left(btrim(regexp_replace(cause_title, '[0-9]+([.:,][0-9]+)*', '<n>', 'g'), E' \\t\\n\\r'), 300);
  loop
    cause_hash := left(encode(sha256(convert_to(left(topic, 512), 'UTF8') || '\\x00' || convert_to('unknown', 'UTF8')
      || '\\x00' || convert_to(cause_slug, 'UTF8') || '\\x00' || convert_to(cause_class, 'UTF8') || '\\x00'
      || convert_to(cause_title, 'UTF8') || '\\x00' || convert_to(fold, 'UTF8')), 'hex'), 16);
    select g.id into found_id from redrive.groups g where g.queue_id = queue and g.fingerprint = cause_hash;
    exit when found_id is not null or fold = '2';
    select count(*) into group_count from redrive.groups g where g.queue_id = queue;
    exit when group_count < 5000 or (fold = '1' and group_count < 10000);
    cause_slug := 'other';
    cause_title := '(others)';
    cause_class := case when fold = '1' then '(others)' else '' end;
    fold := case when fold = '1' then '2' else '1' end;
  end loop;
  if found_id is null then
    insert into redrive.groups as g (queue_id, fingerprint, origin, reason, slug, error_class, title, first_seen_at)
    values (queue, cause_hash, left(topic, 512), 'unknown', cause_slug, cause_class, cause_title, at)
    on conflict (queue_id, fingerprint) do update set first_seen_at = least(g.first_seen_at, excluded.first_seen_at)
    returning g.id into found_id;
  else
    update redrive.groups g set first_seen_at = at where g.id = found_id and g.first_seen_at > at;
  end if;
  return found_id;
end
$$;

create function redrive.insert_dlq_message() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  t redrive.items_sourced;
  policy json;
  partitions_count integer;
  last_id text;
  at constant bigint := redrive.instant_of(clock_timestamp());
  actor constant text := 'database user ' || session_user;
begin
  if new.original_topic is null or new.error_message is null then
    raise exception '% must not be null', case when new.original_topic is null then 'original_topic' else 'error_message' end
      using errcode = 'not_null_violation';
  end if;
  if new.id is not null then
    raise exception 'id % cannot be chosen', new.id using errcode = 'feature_not_supported',
      hint = 'Omit id, and read it with "returning id".';
  end if;
  if coalesce(new.status, 'PENDING') <> 'PENDING' or coalesce(new.retry_count, 0) < 0 then
    raise exception 'a new message has the status PENDING and no negative retry_count, not % and %', new.status,
      new.retry_count using errcode = 'check_violation';
  end if;
  t.queue_id := redrive.dead_queue_for(new.original_topic, at);
  select q.policy::json, q.partitions into policy, partitions_count from redrive.queues q where q.id = t.queue_id;
  if new.max_retries is distinct from coalesce((policy #>> '{redrive,redrivesMax}')::integer, 3)
    and new.max_retries is not null then
    raise exception 'max_retries is %, but the dead queue of topic % allows % redrives', new.max_retries,
      new.original_topic, policy #>> '{redrive,redrivesMax}' using errcode = 'feature_not_supported',
      hint = 'Omit max_retries, or change redrives_max of the dead queue.';
  end if;
  t.partition := floor(random() * partitions_count);
  select p.last_id into last_id from redrive.partitions p where p.queue_id = t.queue_id and p.partition = t.partition
    for update;
  -- From here on the queue can neither be deleted nor get a dead queue.
  if not found or exists (select from redrive.queues q where q.id = t.queue_id and q.dead_queue is not null) then
    raise exception 'the dead queue of topic % changed at the same time; repeat the transaction', new.original_topic
      using errcode = 'serialization_failure';
  end if;
  t.id := redrive.next_ksuid(last_id, at);
  update redrive.partitions p set last_id = t.id where p.queue_id = t.queue_id and p.partition = t.partition;
  update redrive.queues q set is_sourced = true, version = q.version + 1 where q.id = t.queue_id and not q.is_sourced;
  t.uuid := redrive.ksuid_uuid(t.id);
  t.is_sourced := true;
  t.created_at := at;
  t.updated_at := at;
  t.died_at := coalesce(redrive.instant_of(new.created_at), at);
  t.expire_deadline := least(at + coalesce((policy ->> 'expireUs')::numeric, 86400000000), 9007199254740991);
  t.attempts := 0;
  t.attempts_max := 0;
  t.priority := 0;
  t.redrives := coalesce(new.retry_count, 0);
  t.state := 0;
  t.payload := coalesce(convert_to(new.payload::text, 'UTF8'), '');
  t.origin := format('{"kind":"http","name":%s,"partition":null,"id":"","group":null,"cluster":null,"createdAt":%s}',
    to_json(new.original_topic::text)::text, t.died_at);
  t.failure := format('{"reason":"unknown","errorClass":"","message":%s,"stack":"","attempts":0,"firstFailedAt":%s,"lastFailedAt":%s,"worker":""}',
    to_json(new.error_message)::text, t.died_at, t.died_at);
  if policy #>> '{redrive,mode}' = 'auto' and (policy #>> '{redrive,redrivesMax}')::integer > 0 then
    t.redrive_at := at + coalesce(policy #>> '{redrive,backoff,delayUsMin}', policy #>> '{redrive,backoff,delayUs}',
      policy #>> '{redrive,backoff,delaysUs,0}', '0')::bigint;
    t.letter := format('{"requeues":0,"lastRedriveAt":null,"redrives":[],"nextRedriveAt":%s,"discardReason":""}', t.redrive_at);
  end if;
  t.group_id := redrive.group_for(t.queue_id, new.original_topic, new.error_message, t.died_at);
  insert into redrive.items_sourced select t.*;
  perform redrive.count_letter(t, 1, 1);
  insert into redrive.group_hours as c (queue_id, group_id, hour, slot, n, last_at)
  values (t.queue_id, t.group_id, t.died_at / 3600000000, -3 - pg_backend_pid() % 16, 1, t.died_at)
  on conflict (queue_id, group_id, hour, slot) do update
    set n = c.n + excluded.n, last_at = greatest(c.last_at, excluded.last_at);
  insert into redrive.audit (at, actor, action, target, reason, request_id, details)
  values (at, actor, 'letters.capture', t.id, 'insert into dlq.dlq_messages', '', json_build_object('letters', 1)::text);
  new.id := t.uuid;
  new.retry_count := t.redrives;
  new.max_retries := coalesce((policy #>> '{redrive,redrivesMax}')::integer, 3);
  new.status := 'PENDING';
  new.created_at := redrive.time_of(t.died_at);
  new.updated_at := redrive.time_of(at);
  return new;
end
$$;
create trigger insert_dlq_message instead of insert on redrive.dlq_messages
  for each row execute function redrive.insert_dlq_message();
`

const procedure = createProcedure(columnList)
  .replace('create procedure', 'create or replace procedure')
  .replace('Archived % dead letters older than % days', 'Archived % DLQ messages older than % days')

export const dlqStatements = `${view}${counting}${update}${insert}${procedure}`
