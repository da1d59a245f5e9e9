/**
 * Never edited once released: stores record its checksum.
 *
 * `letter_ids` has the ids of letters besides their letter id and their source id
 * (core/dead-letters/letter-ids.ts). For existing letters these are the ids of their redrives, and their
 * present id; ids that an item had before it died were not kept. The other statements are indexes: on the
 * reference and the trace of letters (shared/trace-id.ts), on the source id in the archive, and on the time
 * of audit rows.
 */
const letterIdsOf = (table: 'items' | 'archive') => `
insert or ignore into letter_ids (letter_id, id)
  select t.root_id, json_extract(r.value, '$.target.id')
  from ${table} t join json_each(t.letter, '$.redrives') r
  where t.group_id is not null and t.letter is not null and json_extract(r.value, '$.target.id') is not null;
insert or ignore into letter_ids (letter_id, id)
  select root_id, id from ${table} where group_id is not null and id <> root_id;`

export const findLetters = `
create table letter_ids (
  letter_id text not null,
  id text not null,
  primary key (letter_id, id)
) strict, without rowid;
${letterIdsOf('items')}
${letterIdsOf('archive')}
create index letter_ids_id on letter_ids (id);
create index items_reference on items (reference, died_at, id) where reference <> '' and group_id is not null;
create index items_trace on items (substr(headers, instr(headers, '["traceparent","') + 16, 48), died_at, id)
  where instr(headers, '["traceparent","') > 0 and group_id is not null;
create index archive_source on archive (source_id) where source_id is not null and group_id is not null;
create index archive_reference on archive (reference) where reference <> '' and group_id is not null;
create index archive_trace on archive (substr(headers, instr(headers, '["traceparent","') + 16, 48))
  where instr(headers, '["traceparent","') > 0 and group_id is not null;
create index audit_at on audit (at, id);
`
