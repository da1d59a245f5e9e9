/** Never edited once released: stores record its checksum. docs/internals/tables.md describes the table. */
export const queueDeletions = `
create table queue_deletions (
  queue_id integer primary key,
  at integer not null,
  is_forced integer not null,
  attribution text
) strict;
`
