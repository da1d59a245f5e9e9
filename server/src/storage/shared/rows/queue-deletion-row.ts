/** Deletions of queues that are not finished. */
import type { QueueDeletion } from '../../contract/queues.ts'
import { type DatabaseRow, readJson, readNumber, readText, readTextOrNull } from './row-values.ts'

export function encodeAttribution(attribution: QueueDeletion['attribution']): string | null {
  return attribution === null ? null : JSON.stringify(attribution)
}

export function toQueueDeletion(row: DatabaseRow): QueueDeletion {
  const hasAttribution = readTextOrNull(row, 'attribution') !== null
  return {
    name: readText(row, 'name'),
    createdAt: readNumber(row, 'created_at'),
    at: readNumber(row, 'at'),
    isForced: readNumber(row, 'is_forced') === 1,
    attribution: hasAttribution ? (readJson(row, 'attribution') as QueueDeletion['attribution']) : null,
  }
}
