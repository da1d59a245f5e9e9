/**
 * Never edited once released: stores record its checksum.
 *
 * The tables of access control (contract/access.ts). `access_state` has one row. Existing queues are in the
 * namespace `_system`, which the server creates at its start.
 */
export const access = `
create table access_state (
  version integer not null,
  epoch integer not null,
  initialised_at integer,
  closed_at integer,
  open_binding_id text
) strict;
insert into access_state (version, epoch) values (0, 0);

create table namespaces (
  name text primary key,
  description text not null,
  key_tag text not null,
  created_at integer not null
) strict, without rowid;

create table users (
  id text primary key,
  username text not null unique,
  email text not null,
  external_id text not null,
  created_at integer not null,
  updated_at integer not null
) strict, without rowid;

create table api_keys (
  id text primary key,
  user_id text not null,
  scope text,
  name text not null,
  prefix text not null,
  hash text not null unique,
  expires_at integer,
  last_used_at integer,
  created_at integer not null
) strict, without rowid;
create index api_keys_user on api_keys (user_id, id);
create index api_keys_prefix on api_keys (prefix);

create table roles (
  id text primary key,
  namespace text not null,
  name text not null,
  permissions text not null,
  created_at integer not null,
  unique (namespace, name)
) strict, without rowid;

create table role_bindings (
  id text primary key,
  namespace text not null,
  user_id text not null,
  role_id text not null,
  created_at integer not null,
  unique (namespace, user_id, role_id)
) strict, without rowid;
create index role_bindings_user on role_bindings (user_id);
create index role_bindings_role on role_bindings (role_id);

create table sessions (
  hash text primary key,
  key_id text not null,
  created_at integer not null,
  expires_at integer not null
) strict, without rowid;
create index sessions_key on sessions (key_id);
create index sessions_expire on sessions (expires_at);
create index queues_namespace on queues (namespace, name);
`
