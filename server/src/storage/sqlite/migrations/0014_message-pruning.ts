/** Never edited once released: stores record its checksum. docs/internals/tables.md describes the table. */
export const messagePruning = `
create table webhook_configuration (
  id integer primary key check (id = 1),
  checksum text not null,
  changed_at integer not null
) strict;
`
