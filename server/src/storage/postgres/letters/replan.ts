import { replanRedrive } from '../../../core/letter.ts'
import type { Queue } from '../../../core/queue.ts'
import type { ReplanRedrives, ReplanResult } from '../../contract/letters.ts'
import { exhaustEntries } from '../../shared/audit-entries.ts'
import { policyToText } from '../../shared/queue-row.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Statement } from '../connection/connection.ts'
import type { Transaction } from '../transaction.ts'
import { type ChangedLetter, holdLetters, writeLetters } from './letter-rows.ts'
import { findLetters } from './list-letters.ts'

/** Its version stays: nothing that a server remembers of the queue is other than before. */
const tellQueue: Statement = {
  name: 'tell-replanned',
  text: 'update redrive.queues set policy = $2 where id = $1 returning *',
}

/** Under the lock on queue definitions: nobody changes the policy meanwhile. */
export async function replanRedrives(
  transaction: Transaction,
  command: ReplanRedrives,
): Promise<ReplanResult> {
  const { connection } = transaction
  const { countMax, now } = command
  const queueRow = await transaction.get(command.queue)
  const { replannedUntil, ...queue } = queueRow.queue
  if (replannedUntil === undefined) return { changed: 0, isMore: false }
  // What this transaction changed so far is found by its counts, too.
  await transaction.flushLetters()
  const { letterIds, next } = await findLetters(connection, {
    filter: { queues: [queue.name], states: ['waiting', 'scheduled', 'leased'] },
    order: 'diedAt',
    isDescending: false,
    ...(replannedUntil !== null && { after: replannedUntil }),
    countMax,
    lookMax: countMax,
  })
  const changed: ChangedLetter[] = []
  for (const { queueRow, letter } of (await holdLetters(transaction, letterIds)).values()) {
    const after = replanRedrive(letter, queue.redrive, now, transaction.random())
    if (after !== undefined) changed.push({ queueRow, before: letter, after })
  }
  await writeLetters(transaction, changed)
  const entries = exhaustEntries(
    command.trace,
    changed.map(({ after }) => after),
  )
  await insertAudit(connection, entries)
  const told: Queue = next === null ? queue : { ...queue, replannedUntil: next }
  const [row] = await connection.query(tellQueue, [queueRow.id, policyToText(told)])
  transaction.setChanged(queue.name, row)
  return { changed: changed.length, isMore: next !== null }
}
