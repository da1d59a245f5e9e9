/**
 * Never edited once released: stores record its checksum.
 *
 * The tables of access control (contract/access.ts). `access_state` has one row. Existing queues are in the
 * namespace `_system`, which the server creates at its start.
 */
export const access = `
create table redrive.access_state (
  version bigint not null,
  epoch bigint not null,
  initialised_at bigint,
  closed_at bigint,
  open_binding_id text collate "C"
);
insert into redrive.access_state (version, epoch) values (0, 0);

create table redrive.namespaces (
  name text collate "C" primary key,
  description text collate "C" not null,
  key_tag text collate "C" not null,
  created_at bigint not null
);

create table redrive.users (
  id text collate "C" primary key,
  username text collate "C" not null unique,
  email text collate "C" not null,
  external_id text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null
);

create table redrive.api_keys (
  id text collate "C" primary key,
  user_id text collate "C" not null,
  scope text collate "C",
  name text collate "C" not null,
  prefix text collate "C" not null,
  hash text collate "C" not null unique,
  expires_at bigint,
  last_used_at bigint,
  created_at bigint not null
);
create index api_keys_user on redrive.api_keys (user_id, id);
create index api_keys_prefix on redrive.api_keys (prefix);

create table redrive.roles (
  id text collate "C" primary key,
  namespace text collate "C" not null,
  name text collate "C" not null,
  permissions text collate "C" not null,
  created_at bigint not null,
  unique (namespace, name)
);

create table redrive.role_bindings (
  id text collate "C" primary key,
  namespace text collate "C" not null,
  user_id text collate "C" not null,
  role_id text collate "C" not null,
  created_at bigint not null,
  unique (namespace, user_id, role_id)
);
create index role_bindings_user on redrive.role_bindings (user_id);
create index role_bindings_role on redrive.role_bindings (role_id);

create table redrive.sessions (
  hash text collate "C" primary key,
  key_id text collate "C" not null,
  created_at bigint not null,
  expires_at bigint not null
);
create index sessions_key on redrive.sessions (key_id);
create index sessions_expire on redrive.sessions (expires_at);
create index queues_namespace on redrive.queues (namespace, name);
`
