import { replanRedrive } from '../../../core/dead-letters/letter.ts'
import type { ItemHead } from '../../../core/items/item.ts'
import type { Queue } from '../../../core/items/queue.ts'
import type { ReplanRedrives, ReplanResult } from '../../contract/letters.ts'
import { exhaustEntries } from '../../shared/audit/audit-entries.ts'
import { encodePolicy } from '../../shared/items/queue-row.ts'
import { insertAudit } from '../audit/audit.ts'
import { headColumnList, toItemHead } from '../items/rows.ts'
import { rewriteRow } from '../items/write-rows.ts'
import type { Transaction } from '../transaction.ts'
import { findRanges } from './index-ranges.ts'
import { findEntries } from './scan-letters.ts'

const rowSql = `select ${headColumnList} from items where rowid = ?`

export function replanRedrives(transaction: Transaction, command: ReplanRedrives): ReplanResult {
  const { database, queueCache, countChanges } = transaction
  const { countMax, now } = command
  const queueRow = queueCache.get(command.queue)
  const { replannedUntil, ...queue } = queueRow.queue
  if (replannedUntil === undefined) return { changed: 0, isMore: false }
  // The search uses the counts, so they must contain the changes of this transaction.
  countChanges.flush(database)
  const ranges = findRanges(database, {
    filter: { queues: [queue.name], states: ['waiting', 'scheduled', 'leased'] },
    order: 'deadLetteredAt',
    isDescending: false,
  })
  const { entries, next } = findEntries(database, ranges, {
    ...(replannedUntil !== null && { after: replannedUntil }),
    countMax,
    examinedMax: countMax,
    msMax: Number.POSITIVE_INFINITY,
  })
  const changed: ItemHead[] = []
  for (const { rowid } of entries) {
    const row = database.getArray(rowSql, rowid)
    if (row === undefined) continue
    const letter = toItemHead(row, queue.name)
    const after = replanRedrive(letter, queue.redrive, now, queueCache.random())
    if (after === undefined) continue
    rewriteRow(transaction, queueRow, letter, after)
    changed.push(after)
  }
  insertAudit(database, exhaustEntries(command.audit, changed))
  const replanned: Queue = next === null ? queue : { ...queue, replannedUntil: next }
  database.run('update queues set policy = ? where id = ?', encodePolicy(replanned), queueRow.id)
  queueRow.queue = replanned
  return { changed: changed.length, isMore: next !== null }
}
