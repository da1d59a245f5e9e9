/**
 * Never edited once released: stores record its checksum. docs/internals/tables.md describes the tables.
 *
 * A group that another one covers has no bucket, so that `merged_into` can also name the group into which a
 * person merged it: such a group still takes letters of its own cause. Groups from before 0005 had no key of
 * their cause; each of them is a cause of its own.
 */
export const causes = `
alter table groups add column pinned_title text;
update groups set bucket = '' where merged_into is not null;
update groups set cause_key = fingerprint where cause_key = '';
create index groups_cause on groups (cause_key, id);
create index groups_merged on groups (merged_into) where merged_into is not null;

-- The keys of causes that were merged into others.
create table cause_aliases (
  cause_key text primary key,
  merged_into text not null
) strict, without rowid;

create index cause_aliases_merged on cause_aliases (merged_into);

create table group_jobs (
  id text primary key,
  version integer not null,
  state text not null,
  document text not null
) strict, without rowid;

create index group_jobs_state on group_jobs (state, id);
`
