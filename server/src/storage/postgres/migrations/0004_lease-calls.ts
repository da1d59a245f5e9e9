/** When workers last asked for items of a queue, so that all servers know whether it has workers. */
export const leaseCalls = `
create table redrive.lease_calls (
  queue_id integer primary key,
  at bigint not null
);
`
