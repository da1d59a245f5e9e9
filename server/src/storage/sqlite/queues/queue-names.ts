import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'

/** The names of all queues, by id. */
export function readQueueNames(database: Database): Map<number, string> {
  const rows = database.readArrays('select id, name from queues')
  return new Map(rows.map((row) => [readNumber(row, 0), readText(row, 1)]))
}

/** The ids of the named queues, or of the queues in namespaces. */
export function readSelectedQueueIds(
  database: Database,
  selection: Readonly<{ queues: readonly string[] } | { namespaces: readonly string[] }>,
): number[] {
  if ('queues' in selection) return readQueueIds(database, selection.queues)
  return selection.namespaces.flatMap((namespace) =>
    database
      .readArrays('select id from queues where namespace = ?', namespace)
      .map((row) => readNumber(row, 0)),
  )
}

/** The ids of the named queues. Names without a queue are left out. */
export function readQueueIds(database: Database, names: readonly string[]): number[] {
  return names.flatMap((name) => {
    const row = database.getArray('select id from queues where name = ?', name)
    return row === undefined ? [] : [readNumber(row, 0)]
  })
}
