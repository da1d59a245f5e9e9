/** Never edited once released: stores record its checksum. docs/internals/tables.md describes the table. */
export const queueDeletions = `
create table redrive.queue_deletions (
  queue_id integer primary key,
  at bigint not null,
  is_forced integer not null,
  attribution text
);
`
