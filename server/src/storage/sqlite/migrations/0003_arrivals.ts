/**
 * Never edited once released: stores record its checksum.
 *
 * `arrivals` has a number that each new campaign increases. `arrival` is this number when a letter arrived or
 * was restored, and `arrived_until` when a campaign was created. The set of a campaign has the letters that
 * arrived before it, and no clock decides which these are. Null: the letter arrived before there were
 * numbers.
 */
export const arrivals = `
create table arrivals (number integer not null) strict;
insert into arrivals values (1);
alter table items add column arrival integer;
alter table campaigns add column arrived_until integer not null default 0;
`
