/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the table.
 *
 * An integer has no TOAST table, whose index would need a page when the table is emptied on a full disk. A
 * page has few rows, so that few rows fill 8 MiB.
 */
export const diskReserve = `
create unlogged table redrive.disk_reserve (n integer not null) with (fillfactor = 10, autovacuum_enabled = off);
`
