import type { Queue, QueuePolicy } from '../../core/queue.ts'

/** From a row of `queues`, which has the same columns in both backends. */
export function toQueue(row: Readonly<Record<string, unknown>>): Queue {
  return {
    ...(JSON.parse(row.policy as string) as QueuePolicy),
    deadQueue: row.dead_queue as string | null,
    name: row.name as string,
    namespace: row.namespace as string,
    partitions: row.partitions as number,
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
  }
}

/** The columns are the truth for what has one; the rest of the policy is this text. */
export function policyToText(queue: Queue): string {
  const { name, namespace, partitions, createdAt, updatedAt, deadQueue, ...policy } = queue
  return JSON.stringify(policy)
}
