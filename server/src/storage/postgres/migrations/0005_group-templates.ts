/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 *
 * Groups from before have no bucket: they keep their letters, and new letters get new groups.
 */
export const groupTemplates = `
alter table redrive.groups add column bucket text collate "C" not null default '';
alter table redrive.groups add column cause_key text collate "C" not null default '';
alter table redrive.groups add column template text collate "C" not null default '';
alter table redrive.groups add column merged_into integer;
create index groups_bucket on redrive.groups (bucket, queue_id, id) where bucket <> '';
`
