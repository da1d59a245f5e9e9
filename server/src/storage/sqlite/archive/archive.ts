/** Moves ended items to the archive, and deletes old items from it. */
import type { EndedState } from '../../../core/dead-letters/letter-class.ts'
import type { Archive } from '../../contract/archive.ts'
import type { LetterResults, PurgeArchive } from '../../contract/letters.ts'
import type { Results } from '../../contract/storage.ts'
import { createQueueEntries } from '../../shared/audit/audit-entries.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import { archiveDetails, listStatesToArchive } from '../../shared/letters/archive-rules.ts'
import { readNumber, readNumberOrNull, readText } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Values } from '../connection/database.ts'
import { itemColumnList, stateCodes } from '../items/rows.ts'
import { forgetLetterIds } from '../letters/letter-ids.ts'
import type { Transaction } from '../transaction.ts'

const findEndedSql = `select ended_at, id, rowid, length(payload), partition, group_id, redrives, died_at from items
  where queue_id = ? and state = ? and ended_at < ? order by ended_at, id limit +?`
const copySql = `insert into archive (${itemColumnList}, archived_at)
  select ${itemColumnList}, ? from items where rowid in (select value from json_each(?))`
const deleteSql = 'delete from items where rowid in (select value from json_each(?))'

/**
 * There is one writer and one transaction, so exactly the copied rows are deleted, and the class of the queue
 * cannot change in between.
 */
export function archive(
  { database, queueCache, countChanges }: Transaction,
  command: Archive,
): Results['archive'] {
  const { endedBefore, countMax, now } = command
  const queueRow = queueCache.get(command.queue)
  const states = listStatesToArchive(command, queueRow.queue)
  const found = states
    .flatMap((state) => {
      const rows = database.readArrays(findEndedSql, queueRow.id, stateCodes[state], endedBefore, countMax)
      return rows.map((row) => decodeEnded(row, state))
    })
    .sort((a, b) => a.endedAt - b.endedAt || (a.id < b.id ? -1 : 1))
    .slice(0, countMax)
  const { step, isMore } = takeStep(found, ({ bytes }) => bytes, countMax)
  if (step.length === 0) return { archived: 0, isMore }
  const rowids = JSON.stringify(step.map(({ rowid }) => rowid))
  database.run(copySql, now, rowids)
  database.run(deleteSql, rowids)
  for (const { state, partition, groupId, redrives, deadLetteredAt } of step) {
    countChanges.add(queueRow.id, partition, state, -1)
    countChanges.add(queueRow.id, partition, 'archived')
    if (groupId !== null)
      countChanges.letters.add(queueRow.id, groupId, state, redrives, deadLetteredAt ?? 0, -1)
  }
  const letters = step.filter(({ groupId }) => groupId !== null).length
  const details = archiveDetails(command, states, letters)
  insertAudit(database, createQueueEntries(command.audit, command.queue, step.length, details))
  return { archived: step.length, isMore }
}

/** From a row of `findEndedSql`. */
function decodeEnded(row: Values, state: EndedState) {
  return {
    state,
    endedAt: readNumber(row, 0),
    id: readText(row, 1),
    rowid: readNumber(row, 2),
    bytes: readNumber(row, 3),
    partition: readNumber(row, 4),
    groupId: readNumberOrNull(row, 5),
    redrives: readNumber(row, 6),
    deadLetteredAt: readNumberOrNull(row, 7),
  }
}

const findOldSql = `select rowid, length(payload) from archive where queue_id = ? and archived_at < ?
  order by archived_at, id limit +?`
const purgeSql = `delete from archive where rowid in (select value from json_each(?))
  returning root_id, group_id, partition`

/** Deletes the edited versions and the other ids of letters too. */
export function purgeArchive(
  { database, queueCache, countChanges }: Transaction,
  command: PurgeArchive,
): LetterResults['purge-archive'] {
  const { archivedBefore, countMax } = command
  const queueRow = queueCache.get(command.queue)
  const found = database
    .readArrays(findOldSql, queueRow.id, archivedBefore, countMax)
    .map((row) => ({ rowid: readNumber(row, 0), bytes: readNumber(row, 1) }))
  const { step, isMore } = takeStep(found, ({ bytes }) => bytes, countMax)
  const purged = database.readArrays(purgeSql, JSON.stringify(step.map(({ rowid }) => rowid)))
  for (const row of purged) {
    const isLetter = readNumberOrNull(row, 1) !== null
    const partition = readNumber(row, 2)
    countChanges.add(queueRow.id, partition, 'archived', -1)
    countChanges.add(queueRow.id, partition, 'purged')
    if (!isLetter) continue
    const letterId = readText(row, 0)
    database.run('delete from letter_edits where letter_id = ?', letterId)
    forgetLetterIds(database, letterId)
  }
  const count = purged.length
  insertAudit(database, createQueueEntries(command.audit, command.queue, count, { letters: count }))
  return { purged: count, isMore }
}
