/**
 * Never edited once released: stores record its checksum.
 *
 * `insert or replace` with the id of an audit row fires no trigger for the row that it replaces.
 */
export const auditReplace = `
create trigger audit_refuses_replace before insert on audit
when exists (select 1 from audit where id = new.id) begin
  select raise(abort, 'audit rows cannot be changed');
end;
`
