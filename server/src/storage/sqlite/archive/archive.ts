import type { EndedState } from '../../../core/letter-class.ts'
import type { Archive } from '../../contract/archive.ts'
import type { Results } from '../../contract/storage.ts'
import { archiveDetails, statesToArchive } from '../../shared/archive-rules.ts'
import { queueEntries } from '../../shared/audit-entries.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Values } from '../connection/database.ts'
import { itemColumnList, stateCodes } from '../items/rows.ts'
import type { Transaction } from '../transaction.ts'

const pickSql = `select ended_at, id, rowid, length(payload), partition, group_id, redrives, died_at from items
  where queue_id = ? and state = ? and ended_at < ? order by ended_at, id limit +?`
const copySql = `insert into archive (${itemColumnList}, archived_at)
  select ${itemColumnList}, ? from items where rowid in (select value from json_each(?))`
const deleteSql = 'delete from items where rowid in (select value from json_each(?))'

/**
 * One writer, one transaction: the set that is copied cannot differ from the set that is deleted, and the class of the
 * queue is the one that it has meanwhile.
 */
export function archive({ database, queueCache, tally }: Transaction, command: Archive): Results['archive'] {
  const { endedBefore, countMax, now } = command
  const queueRow = queueCache.get(command.queue)
  const states = statesToArchive(command, queueRow.queue)
  const found = states
    .flatMap((state) => {
      const rows = database.arrays(pickSql, queueRow.id, stateCodes[state], endedBefore, countMax)
      return rows.map((row) => pickedOf(row, state))
    })
    .sort((a, b) => a.endedAt - b.endedAt || (a.id < b.id ? -1 : 1))
    .slice(0, countMax)
  const { step: picked, isMore } = takeStep(found, ({ bytes }) => bytes, countMax)
  if (picked.length === 0) return { archived: 0, isMore }
  const rowids = JSON.stringify(picked.map(({ rowid }) => rowid))
  database.run(copySql, now, rowids)
  database.run(deleteSql, rowids)
  for (const { state, partition, groupId, redrives, diedAt } of picked) {
    tally.add(queueRow.id, partition, state, -1)
    tally.add(queueRow.id, partition, 'archived')
    if (groupId !== null) tally.letters.change(queueRow.id, groupId, state, redrives, diedAt ?? 0, -1)
  }
  const letters = picked.filter(({ groupId }) => groupId !== null).length
  const details = archiveDetails(command, states, letters)
  insertAudit(database, queueEntries(command.trace, command.queue, picked.length, details))
  return { archived: picked.length, isMore }
}

function pickedOf(
  [endedAt, id, rowid, bytes, partition, groupId, redrives, diedAt]: Values,
  state: EndedState,
) {
  return {
    state,
    endedAt: endedAt as number,
    id: id as string,
    rowid: rowid as number,
    bytes: bytes as number,
    partition: partition as number,
    groupId: groupId as number | null,
    redrives: redrives as number,
    diedAt: diedAt as number | null,
  }
}
