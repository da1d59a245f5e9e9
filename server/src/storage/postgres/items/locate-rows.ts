/**
 * Finds rows by their ids in a way that no statistics can spoil.
 *
 * A plain join on (queue_id, partition, id) may be planned with the first two columns only, because for a
 * table that was nearly empty when it was last analysed both ways look equally cheap; a burst of items
 * then costs their square. `offset 0` keeps the look-up whole: each row is found by all three. What is
 * found is then changed by its place (`isAt`), not by another join.
 */
export function locateRows(
  wanted: string,
  columns: Readonly<{ queueId: string; partition: string; id: string }> = {
    queueId: 'queue_id',
    partition: 'partition',
    id: 'id',
  },
): string {
  return `lateral (
      select f.tableoid as home, f.ctid as place from redrive.items f
      where f.queue_id = ${wanted}.${columns.queueId} and f.partition = ${wanted}.${columns.partition}
        and f.id = ${wanted}.${columns.id} offset 0)`
}

/** Joins `table` with what `locate` found. Only for rows that this transaction has locked. */
export function isLocatedRow(table: string, found: string): string {
  return `${table}.ctid = ${found}.place and ${table}.tableoid = ${found}.home`
}
