/** When workers last asked for items of a queue, also before the server was restarted. */
export const leaseCalls = `
create table lease_calls (
  queue_id integer primary key,
  at integer not null
) strict;
`
