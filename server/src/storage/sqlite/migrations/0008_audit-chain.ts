/**
 * Never edited once released: stores record its checksum.
 *
 * Audit rows get the namespace, the address and the key of the caller, and a link to the row before them
 * (shared/audit-chain.ts). The head of chain 0 has the hash over the rows that exist already;
 * `audit_chain_hash` (connection/audit-functions.ts) computes it. Triggers refuse every change.
 */
export const auditChain = `
alter table audit add column namespace text not null default '_system';
alter table audit add column address text not null default '';
alter table audit add column key_prefix text not null default '';
alter table audit add column chain integer;
alter table audit add column position integer;
alter table audit add column hash blob;
create table audit_chains (
  chain integer primary key,
  position integer not null,
  hash blob not null,
  last_id integer not null
) strict;
insert into audit_chains (chain, position, hash, last_id)
  select 0, count(*), unhex(audit_chain_hash(id, at, actor, action, target, reason, request_id, namespace, address,
    key_prefix, details order by id)), max(id) from audit having count(*) > 0;
create index audit_actor on audit (actor, id);
create index audit_request on audit (request_id, id) where request_id <> '';
create index audit_namespace on audit (namespace, id) where namespace <> '_system';
create trigger audit_refuses_update before update on audit begin
  select raise(abort, 'audit rows cannot be changed');
end;
create trigger audit_refuses_delete before delete on audit begin
  select raise(abort, 'audit rows cannot be deleted');
end;
create trigger audit_chains_refuse_step_back before update on audit_chains when new.position <= old.position begin
  select raise(abort, 'the head of an audit chain moves forward only');
end;
`
