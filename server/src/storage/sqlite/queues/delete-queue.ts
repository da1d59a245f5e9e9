import { openLetterStates } from '../../../core/dead-letters/letter-class.ts'
import type { DeleteQueue, DeleteQueueResult } from '../../contract/queues.ts'
import { createQueueEntries, createRemovalDetails } from '../../shared/audit/audit-entries.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import { decodeFacts } from '../../shared/items/item-row.ts'
import {
  checkHoldsNoOpenLetters,
  createQueueInUseError,
  createQueueNotFoundError,
} from '../../shared/items/queue-checks.ts'
import { readNumber, readText, readTextOrNull } from '../../shared/rows/row-values.ts'
import { purgeArchive } from '../archive/archive.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import { countLetters, deleteStep } from '../items/remove.ts'
import { listedCodes } from '../items/rows.ts'
import { endDeletedItem, endDeletedLetter } from '../letters/redrive-ends.ts'
import type { Transaction } from '../transaction.ts'
import type { QueueRow } from './queue-cache.ts'
import { recordQueueDeletion } from './queue-deletions.ts'
import { findDeadQueueUser } from './queues.ts'

/** The tables with rows of a queue, except items and groups. */
const tables = [
  'archive',
  'counts',
  'produce_keys',
  'letter_edits',
  'letter_counts',
  'open_minutes',
  'lease_calls',
  'queue_deletions',
  'group_lifecycles',
  'group_notices',
]

/** Deletes the other ids of the letters of a queue. */
const forgetSqls = ['items', 'archive'].map(
  (table) => `delete from letter_ids where letter_id in (
    select root_id from ${table} where queue_id = ? and group_id is not null)`,
)

export function deleteQueue(transaction: Transaction, command: DeleteQueue): DeleteQueueResult {
  const { database, queueCache, groups, countChanges } = transaction
  const queueRow = queueCache.get(command.name)
  const { id } = queueRow
  if (command.createdAt !== undefined && command.createdAt !== queueRow.queue.createdAt) {
    throw createQueueNotFoundError(command.name)
  }
  const user = findDeadQueueUser(database, command.name)
  if (user !== undefined) throw createQueueInUseError(command.name, user)
  if (command.isForced !== true) {
    checkHoldsNoOpenLetters(queueRow.queue, countLetters(transaction, queueRow, openLetterStates))
  }
  const step =
    command.countMax === undefined ? undefined : deleteSome(transaction, queueRow, command.countMax)
  if (step !== undefined) {
    recordQueueDeletion(transaction, id, command)
    insertAudit(
      database,
      createQueueEntries(command.audit, command.name, 1, { ...step.details, isMore: true }),
    )
    return { removed: step.removed, isMore: true }
  }
  const letters = countLettersByState(database, id)
  endRedrivesInto(transaction, id)
  endRedrivesFrom(transaction, id)
  for (const sql of forgetSqls) database.run(sql, id)
  const removed = database.run('delete from items where queue_id = ?', id)
  const archived = countArchived(database, id)
  const details = { ...createRemovalDetails(removed, letters), ...(archived > 0 && { archived }) }
  insertAudit(database, createQueueEntries(command.audit, command.name, 1, details))
  for (const table of tables) database.run(`delete from ${table} where queue_id = ?`, id)
  database.run('delete from group_hours where group_id in (select id from groups where queue_id = ?)', id)
  database.run('delete from groups where queue_id = ?', id)
  database.run('delete from queues where id = ?', id)
  countChanges.dropQueue(id)
  queueCache.invalidate()
  groups.invalidate()
  return { removed, isMore: false }
}

type Step = Readonly<{ removed: number; details: Readonly<Record<string, unknown>> }>

/** Deletes some of the items, or of the archived ones. Undefined: so few are left that none was deleted. */
function deleteSome(transaction: Transaction, queueRow: QueueRow, countMax: number): Step | undefined {
  const items = deleteStep(transaction, queueRow, countMax)
  if (items !== undefined)
    return { removed: items.removed, details: createRemovalDetails(items.removed, items.letters) }
  const sizes = transaction.database.readArrays(archivedSizesSql, queueRow.id, countMax)
  if (!takeStep(sizes, (row) => readNumber(row, 0), countMax).isMore) return undefined
  const all = { queue: queueRow.queue.name, archivedBefore: Number.MAX_SAFE_INTEGER, countMax }
  const { purged } = purgeArchive(transaction, { op: 'purge-archive', ...all })
  return { removed: 0, details: { archived: purged } }
}

/** In the order of `purgeArchive`. */
const archivedSizesSql = `select length(payload) from archive where queue_id = ?
  order by archived_at, id limit +?`

function countLettersByState(database: Database, queueId: number): Record<string, number> {
  const sql = `select letter_state, count(*) from items where queue_id = ? and letter_state is not null
    group by letter_state`
  const counts = new Map(
    database.readArrays(sql, queueId).map((row) => [readNumber(row, 0), readNumber(row, 1)]),
  )
  const letters: Record<string, number> = {}
  for (const [state, code] of Object.entries(listedCodes)) {
    const count = counts.get(code)
    if (count !== undefined) letters[state] = count
  }
  return letters
}

function countArchived(database: Database, queueId: number): number {
  const row = database.getArray('select count(*) from archive where queue_id = ?', queueId)
  return row === undefined ? 0 : readNumber(row, 0)
}

/** Ends the redrives whose items are deleted with this queue: their letters are in other queues. */
function endRedrivesInto(transaction: Transaction, queueId: number): void {
  const sql = 'select letter_id, redrives from items where queue_id = ? and letter_id is not null'
  for (const row of transaction.database.readArrays(sql, queueId)) {
    endDeletedItem(transaction, { letterId: readText(row, 0), retryCount: readNumber(row, 1) })
  }
}

/** Ends the redrives whose letters are deleted with this queue, for the campaigns that sent them. */
function endRedrivesFrom(transaction: Transaction, queueId: number): void {
  const sql = 'select root_id, letter from items where queue_id = ? and letter_state = ?'
  for (const row of transaction.database.readArrays(sql, queueId, listedCodes.leased)) {
    const letter = decodeFacts(readTextOrNull(row, 1), null)
    endDeletedLetter(transaction, { state: 'leased', letter, rootId: readText(row, 0) })
  }
}
