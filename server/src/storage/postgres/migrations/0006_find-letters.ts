/**
 * Never edited once released: stores record its checksum.
 *
 * `letter_ids` has the ids of letters besides their letter id and their source id
 * (core/dead-letters/letter-ids.ts). For existing letters these are the ids of their redrives, and their
 * present id; ids that an item had before it died were not kept. The ids are found as text, because jsonb
 * refuses some of the stored texts: inside a JSON text a quote is escaped, so the pattern matches only the
 * fields of a target. The other statements are indexes: on the reference and the trace of letters
 * (shared/trace-id.ts), on the source id in the archive, and on the time of audit rows.
 */
const letterIdsOf = (table: 'items_sourced' | 'archive') => `
insert into redrive.letter_ids (letter_id, id)
  select coalesce(t.root_id, t.id), m[1]
  from redrive.${table} t
    cross join lateral regexp_matches(t.letter, '"partition":(?:null|[0-9]+),"id":"([^"\\\\]+)"', 'g') m
  where t.group_id is not null and t.letter is not null
  on conflict do nothing;
insert into redrive.letter_ids (letter_id, id)
  select t.root_id, t.id from redrive.${table} t where t.group_id is not null and t.root_id <> t.id
  on conflict do nothing;`

export const findLetters = `
create table redrive.letter_ids (
  letter_id text collate "C" not null,
  id text collate "C" not null,
  primary key (letter_id, id)
);
${letterIdsOf('items_sourced')}
${letterIdsOf('archive')}
create index letter_ids_id on redrive.letter_ids (id);
create index items_sourced_reference on redrive.items_sourced (substring(reference from 1 for 100), died_at, id)
  where reference is not null and group_id is not null;
create index items_sourced_trace on redrive.items_sourced
  (substring(headers from strpos(headers, '["traceparent","') + 16 for 48), died_at, id)
  where strpos(headers, '["traceparent","') > 0 and group_id is not null;
create index archive_source on redrive.archive (source_id) where source_id is not null and group_id is not null;
create index archive_reference on redrive.archive (substring(reference from 1 for 100))
  where reference is not null and group_id is not null;
create index archive_trace on redrive.archive
  (substring(headers from strpos(headers, '["traceparent","') + 16 for 48))
  where strpos(headers, '["traceparent","') > 0 and group_id is not null;
create index audit_at on redrive.audit (at, id);
`
