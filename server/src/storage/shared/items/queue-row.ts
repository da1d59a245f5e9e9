/** The rows of the table `queues`, which has the same columns in both stores. */
import type { Queue, QueuePolicy } from '../../../core/items/queue.ts'
import { type DatabaseRow, readJson, readNumber, readText, readTextOrNull } from '../rows/row-values.ts'

export function toQueue(row: DatabaseRow): Queue {
  return {
    ...toPolicy(readJson<StoredPolicy>(row, 'policy')),
    deadQueue: readTextOrNull(row, 'dead_queue'),
    name: readText(row, 'name'),
    namespace: readText(row, 'namespace'),
    partitions: readNumber(row, 'partitions'),
    createdAt: readNumber(row, 'created_at'),
    updatedAt: readNumber(row, 'updated_at'),
  }
}

/** The column keeps the names of its first version, which the SQL functions for people read too. */
type StoredPolicy = Omit<
  QueuePolicy,
  'leaseTimeoutUs' | 'expireTimeoutUs' | 'doneRetentionUs' | 'deadQueue'
> &
  Readonly<{ leaseUs: number; expireUs: number; keepDoneUs: number }>

function toPolicy({ leaseUs, expireUs, keepDoneUs, ...rest }: StoredPolicy): Omit<QueuePolicy, 'deadQueue'> {
  return { leaseTimeoutUs: leaseUs, expireTimeoutUs: expireUs, doneRetentionUs: keepDoneUs, ...rest }
}

/** The column `policy`: the fields of a queue that have no column of their own. */
export function encodePolicy(queue: Queue): string {
  const { name, namespace, partitions, createdAt, updatedAt, deadQueue, ...policy } = queue
  const { leaseTimeoutUs, expireTimeoutUs, doneRetentionUs, ...rest } = policy
  const stored: StoredPolicy = {
    leaseUs: leaseTimeoutUs,
    expireUs: expireTimeoutUs,
    keepDoneUs: doneRetentionUs,
    ...rest,
  }
  return JSON.stringify(stored)
}
