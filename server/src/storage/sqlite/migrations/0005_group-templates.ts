/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 *
 * Groups from before have no bucket: they keep their letters, and new letters get new groups.
 */
export const groupTemplates = `
alter table groups add column bucket text not null default '';
alter table groups add column cause_key text not null default '';
alter table groups add column template text not null default '';
alter table groups add column merged_into integer;
create index groups_bucket on groups (bucket, queue_id, id) where bucket <> '';
`
