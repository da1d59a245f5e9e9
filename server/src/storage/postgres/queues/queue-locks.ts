import { awaitAll } from '../connection/await-all.ts'
import type { Connection } from '../connection/connection.ts'
import { StaleReadError } from '../connection/errors.ts'
import type { Transaction } from '../transaction.ts'
import { type QueueRow, toQueueRow } from './queue-cache.ts'

/** Shorter than the time after which a caller stops waiting for its answer. */
const definitionWaitMs = 2_000

/**
 * Locks the definitions of all queues, cluster-wide: the rules about dead queues read several queues at once.
 *
 * A short wait gives up before the caller's own timeout, with nothing changed, so that the caller gets a
 * clear error instead of an unknown outcome. The lock can be held for long by the deletion of a queue with
 * millions of letters; callers that wait and repeat their request would use up all connections.
 */
export async function lockQueueDefinitions(connection: Connection, wait: 'short' | 'long'): Promise<void> {
  if (wait === 'short') await connection.query({ text: `set local lock_timeout = ${definitionWaitMs}` })
  await connection.query({ text: `select pg_advisory_xact_lock(hashtext('redrive queue definitions'))` })
}

/**
 * Reads the queue with a lock that keeps its letter class until this transaction ends. A change of the class
 * waits for the transactions that use the present class, and later transactions wait for the change. (With a
 * lock on the queue's row, a constant stream of readers could delay the change for ever.)
 */
export async function readWithClassLock(
  transaction: Transaction,
  { id, queue }: QueueRow,
): Promise<QueueRow> {
  const { connection } = transaction
  // Two statements: the second sees the changes that were committed while the first waited.
  const [, [row]] = await awaitAll([
    connection.query({ text: `select pg_advisory_xact_lock_shared(${classLock}, $1)` }, [id]),
    connection.query({ text: 'select * from redrive.queues where id = $1' }, [id]),
  ])
  if (row === undefined) throw new StaleReadError(`queue ${queue.name}`)
  return toQueueRow(row)
}

export async function lockClassForChange(transaction: Transaction, { id }: QueueRow): Promise<void> {
  await transaction.connection.query({ text: `select pg_advisory_xact_lock(${classLock}, $1)` }, [id])
}

/** The archive procedure (migrations/dlq-schema.ts) uses the same lock. */
const classLock = `hashtext('redrive letter class')`
