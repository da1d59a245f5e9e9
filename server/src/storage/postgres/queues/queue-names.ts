import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection } from '../connection/connection.ts'

/** The names of all queues, by id. */
export async function readQueueNames(connection: Pick<Connection, 'query'>): Promise<Map<number, string>> {
  const rows = await connection.query({ text: 'select id, name from redrive.queues' })
  return new Map(rows.map((row) => [readNumber(row, 'id'), readText(row, 'name')]))
}
