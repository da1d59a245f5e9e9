import { replanRedrive } from '../../../core/dead-letters/letter.ts'
import type { Queue } from '../../../core/items/queue.ts'
import type { ReplanRedrives, ReplanResult } from '../../contract/letters.ts'
import { searchLetters } from '../../search/search-letters.ts'
import { exhaustEntries } from '../../shared/audit/audit-entries.ts'
import { encodePolicy } from '../../shared/items/queue-row.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Statement } from '../connection/connection.ts'
import type { Transaction } from '../transaction.ts'
import { type ChangedLetter, lockLetters, writeLetters } from './letter-rows.ts'
import { findRanges } from './scan-letters.ts'

/** Keeps the version of the queue, because nothing that servers cache of it changes. */
const updatePolicy: Statement = {
  name: 'update-replanned-policy',
  text: 'update redrive.queues set policy = $2 where id = $1 returning *',
}

/** Runs under the lock on queue definitions, so that the policy cannot change in between. */
export async function replanRedrives(
  transaction: Transaction,
  command: ReplanRedrives,
): Promise<ReplanResult> {
  const { connection } = transaction
  const { countMax, now } = command
  const queueRow = await transaction.get(command.queue)
  const { replannedUntil, ...queue } = queueRow.queue
  if (replannedUntil === undefined) return { changed: 0, isMore: false }
  // The search uses the counts, so they must contain the changes of this transaction.
  await transaction.flushLetters()
  const { found, next } = await searchLetters(
    { findRanges: (query) => findRanges(connection, query) },
    {
      filter: { queues: [queue.name], states: ['waiting', 'scheduled', 'leased'] },
      order: 'deadLetteredAt',
      isDescending: false,
      ...(replannedUntil !== null && { after: replannedUntil }),
      countMax,
      bytes: 'none',
    },
  )
  const letterIds = found.map(({ item }) => item.rootId)
  const changed: ChangedLetter[] = []
  for (const { queueRow, letter } of (await lockLetters(transaction, letterIds)).values()) {
    const after = replanRedrive(letter, queue.redrive, now, transaction.random())
    if (after !== undefined) changed.push({ queueRow, before: letter, after })
  }
  await writeLetters(transaction, changed)
  const entries = exhaustEntries(
    command.audit,
    changed.map(({ after }) => after),
  )
  await insertAudit(connection, entries)
  const replanned: Queue = next === null ? queue : { ...queue, replannedUntil: next }
  const [row] = await connection.query(updatePolicy, [queueRow.id, encodePolicy(replanned)])
  transaction.setChanged(queue.name, row)
  return { changed: changed.length, isMore: next !== null }
}
