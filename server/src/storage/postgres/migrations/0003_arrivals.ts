/**
 * Never edited once released: stores record its checksum.
 *
 * `arrival` numbers the letters in the order in which they arrive or are restored, and `arrived_until` is the
 * number at which a campaign was created. The set of a campaign has the letters that arrived before it, and
 * no clock decides which these are. Null: the letter arrived before there were numbers.
 *
 * Only `items_sourced` has letters, so only inserts into it take a number. The function that inserts a letter
 * by SQL writes whole rows, so it sets the number itself.
 */
export const arrivals = `
create sequence redrive.arrivals as bigint;
alter table redrive.items add column arrival bigint;
alter table redrive.items_sourced alter column arrival set default nextval('redrive.arrivals');
alter table redrive.campaigns add column arrived_until bigint not null default nextval('redrive.arrivals');

do $$
declare
  before constant text := pg_get_functiondef('redrive.insert_dlq_message'::regproc);
  after constant text := replace(before, 'insert into redrive.items_sourced select t.*;',
    't.arrival := nextval(''redrive.arrivals''); insert into redrive.items_sourced select t.*;');
begin
  if after = before then
    raise exception 'redrive.insert_dlq_message does not insert its row as expected';
  end if;
  execute after;
end
$$;
`
