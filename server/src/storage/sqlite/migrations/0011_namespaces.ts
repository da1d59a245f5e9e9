/**
 * Never edited once released: stores record its checksum.
 *
 * Campaigns get the namespace of their letters; empty: letters of several namespaces, or a campaign from
 * before. Namespaces get their quotas; null: no limit.
 */
export const namespaces = `
alter table campaigns add column namespace text not null default '';
create index campaigns_namespace on campaigns (namespace, id);
alter table namespaces add column queues_max integer;
alter table namespaces add column items_max integer;
alter table namespaces add column bytes_max integer;
alter table namespaces add column requests_max integer;
`
