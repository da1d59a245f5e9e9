import type { ItemHead } from '../../../core/item.ts'
import { replanRedrive } from '../../../core/letter.ts'
import type { Queue } from '../../../core/queue.ts'
import type { ReplanRedrives, ReplanResult } from '../../contract/letters.ts'
import { exhaustEntries } from '../../shared/audit-entries.ts'
import { policyToText } from '../../shared/queue-row.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Values } from '../connection/database.ts'
import { headColumnList, toItemHead } from '../items/rows.ts'
import { rewriteRow } from '../items/write-rows.ts'
import type { Transaction } from '../transaction.ts'
import { findLetters } from './list-letters.ts'

const rowSql = `select ${headColumnList} from items where rowid = ?`

export function replanRedrives(transaction: Transaction, command: ReplanRedrives): ReplanResult {
  const { database, queueCache, tally } = transaction
  const { countMax, now } = command
  const queueRow = queueCache.get(command.queue)
  const { replannedUntil, ...queue } = queueRow.queue
  if (replannedUntil === undefined) return { changed: 0, isMore: false }
  // What this transaction changed so far is found by its counts, too.
  tally.flush(database)
  const { places, next } = findLetters(database, {
    filter: { queues: [queue.name], states: ['waiting', 'scheduled', 'leased'] },
    order: 'diedAt',
    isDescending: false,
    ...(replannedUntil !== null && { after: replannedUntil }),
    countMax,
    lookMax: countMax,
  })
  const changed: ItemHead[] = []
  for (const { rowid } of places) {
    const letter = toItemHead(database.array(rowSql, rowid) as Values, queue.name)
    const after = replanRedrive(letter, queue.redrive, now, queueCache.random())
    if (after === undefined) continue
    rewriteRow(transaction, queueRow, letter, after)
    changed.push(after)
  }
  insertAudit(database, exhaustEntries(command.trace, changed))
  const told: Queue = next === null ? queue : { ...queue, replannedUntil: next }
  database.run('update queues set policy = ? where id = ?', policyToText(told), queueRow.id)
  queueRow.queue = told
  return { changed: changed.length, isMore: next !== null }
}
