import { awaitAll } from '../connection/await-all.ts'
import type { Connection } from '../connection/connection.ts'
import { StaleReadError } from '../connection/errors.ts'
import type { Transaction } from '../transaction.ts'
import { type QueueRow, toQueueRow } from './queue-cache.ts'

const changeWaitMs = 2_000

/**
 * One at a time in the whole cluster: the rules about dead queues look at several queues at once. `isHurried`: given up, with
 * nothing done, before those who asked are told that nobody knows. A delete of millions may be before it; whoever
 * repeats meanwhile would take one connection after the other.
 */
export async function lockQueueDefinitions(connection: Connection, isHurried: boolean): Promise<void> {
  if (isHurried) await connection.query({ text: `set local lock_timeout = ${changeWaitMs}` })
  await connection.query({ text: `select pg_advisory_xact_lock(hashtext('redrive queue definitions'))` })
}

/**
 * The queue with the class that it keeps until this transaction ends. Whoever changes the class waits for those who go
 * by it, and those who come later wait for the change: a lock on its row would let them in before it for as long as
 * they come one after the other.
 */
export async function readWithClassLock(
  transaction: Transaction,
  { id, queue }: QueueRow,
): Promise<QueueRow> {
  const { connection } = transaction
  // Two statements: the second sees what was committed while the first waited.
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

/** The archive procedure has the same one. */
const classLock = `hashtext('redrive letter class')`
