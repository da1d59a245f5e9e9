/**
 * Finds rows by their ids with a query plan that does not depend on statistics.
 *
 * A plain join on (queue_id, partition, id) can be planned with the first two columns only: for a table that
 * was nearly empty when it was last analysed, both plans look equally cheap. The cost of a burst of items
 * would then be the square of their number. `offset 0` keeps the planner from splitting the lookup, so each
 * row is found by all three columns. The found rows are changed by their location (`isLocatedRow`), not by
 * another join.
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
      select f.tableoid as table_id, f.ctid as location from redrive.items f
      where f.queue_id = ${wanted}.${columns.queueId} and f.partition = ${wanted}.${columns.partition}
        and f.id = ${wanted}.${columns.id} offset 0)`
}

/** Joins `table` with the result `found` of `locateRows`. Only for rows that this transaction has locked. */
export function isLocatedRow(table: string, found: string): string {
  return `${table}.ctid = ${found}.location and ${table}.tableoid = ${found}.table_id`
}
