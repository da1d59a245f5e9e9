/** The rows of the table `queues`, which has the same columns in both stores. */
import type { Queue, QueuePolicy } from '../../core/queue.ts'
import { type DatabaseRow, readJson, readNumber, readText, readTextOrNull } from './row-values.ts'

export function toQueue(row: DatabaseRow): Queue {
  return {
    ...readJson<QueuePolicy>(row, 'policy'),
    deadQueue: readTextOrNull(row, 'dead_queue'),
    name: readText(row, 'name'),
    namespace: readText(row, 'namespace'),
    partitions: readNumber(row, 'partitions'),
    createdAt: readNumber(row, 'created_at'),
    updatedAt: readNumber(row, 'updated_at'),
  }
}

/** The column `policy`: the fields of a queue that have no column of their own. */
export function encodePolicy(queue: Queue): string {
  const { name, namespace, partitions, createdAt, updatedAt, deadQueue, ...policy } = queue
  return JSON.stringify(policy)
}
