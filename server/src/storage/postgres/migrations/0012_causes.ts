/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 *
 * A group that another one covers has no bucket, so that `merged_into` can also name the group into which a
 * person merged it: such a group still takes letters of its own cause. Groups from before 0005 had no key of
 * their cause; each of them is a cause of its own.
 */
export const causes = `
alter table redrive.groups add column pinned_title text collate "C";
update redrive.groups set bucket = '' where merged_into is not null;
update redrive.groups set cause_key = fingerprint where cause_key = '';
create index groups_cause on redrive.groups (cause_key, id);
create index groups_merged on redrive.groups (merged_into) where merged_into is not null;

-- The keys of causes that were merged into others.
create table redrive.cause_aliases (
  cause_key text collate "C" primary key,
  merged_into text collate "C" not null
);

create index cause_aliases_merged on redrive.cause_aliases (merged_into);

create table redrive.group_jobs (
  id text collate "C" primary key,
  version integer not null,
  state text collate "C" not null,
  document text collate "C" not null
);

create index group_jobs_state on redrive.group_jobs (state, id);
`
