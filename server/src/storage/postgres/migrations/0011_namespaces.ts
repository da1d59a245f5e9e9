/**
 * Never edited once released: stores record its checksum.
 *
 * Campaigns get the namespace of their letters; empty: letters of several namespaces, or a campaign from
 * before. Namespaces get their quotas; null: no limit.
 */
export const namespaces = `
alter table redrive.campaigns add column namespace text collate "C" not null default '';
create index campaigns_namespace on redrive.campaigns (namespace, id);
alter table redrive.namespaces
  add column queues_max bigint,
  add column items_max bigint,
  add column bytes_max bigint,
  add column requests_max bigint;
`
