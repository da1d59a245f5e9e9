import type { DeleteQueue } from '../../contract/queues.ts'
import { queueEntries, removalDetails } from '../../shared/audit-entries.ts'
import { factsFromText } from '../../shared/item-row.ts'
import { queueInUse } from '../../shared/queue-checks.ts'
import { insertAudit } from '../audit/audit.ts'
import { checkNoGuardedLetters } from '../items/remove.ts'
import { listedCodes } from '../items/rows.ts'
import { forgetLetter, loseTrack } from '../letters/redrive-ends.ts'
import type { Transaction } from '../transaction.ts'
import { findDeadQueueUser } from './queues.ts'

/** All that a queue has; the groups go with their letters. */
const tables = ['archive', 'counts', 'produce_keys', 'letter_edits', 'letter_counts', 'open_minutes']

export function deleteQueue(transaction: Transaction, command: DeleteQueue): { removed: number } {
  const { database, queueCache, groups, tally } = transaction
  const queueRow = queueCache.get(command.name)
  const { id } = queueRow
  const user = findDeadQueueUser(database, command.name)
  if (user !== undefined) throw queueInUse(command.name, user)
  if (command.isForced !== true) {
    checkNoGuardedLetters(transaction, queueRow, ['waiting', 'scheduled', 'leased', 'dead'])
  }
  const letters = lettersByState(transaction, id)
  tellLetters(transaction, id)
  tellCampaigns(transaction, id)
  const removed = database.run('delete from items where queue_id = ?', id)
  const archived = database.array('select count(*) from archive where queue_id = ?', id)?.[0] as number
  const details = { ...removalDetails(removed, letters), ...(archived > 0 && { archived }) }
  insertAudit(database, queueEntries(command.trace, command.name, 1, details))
  for (const table of tables) database.run(`delete from ${table} where queue_id = ?`, id)
  database.run('delete from group_hours where group_id in (select id from groups where queue_id = ?)', id)
  database.run('delete from groups where queue_id = ?', id)
  database.run('delete from queues where id = ?', id)
  tally.drop(id)
  queueCache.invalidate()
  groups.invalidate()
  return { removed }
}

function lettersByState({ database }: Transaction, queueId: number): Record<string, number> {
  const sql = `select letter_state, count(*) from items where queue_id = ? and letter_state is not null
    group by letter_state`
  const counts = new Map(database.arrays(sql, queueId).map(([code, n]) => [code as number, n as number]))
  const letters: Record<string, number> = {}
  for (const [state, code] of Object.entries(listedCodes)) {
    const count = counts.get(code)
    if (count !== undefined) letters[state] = count
  }
  return letters
}

/** Letters of other queues whose redrives are in this one come back: nobody will hear of these again. */
function tellLetters(transaction: Transaction, queueId: number): void {
  const sql = 'select letter_id, redrives from items where queue_id = ? and letter_id is not null'
  for (const [letterId, redrives] of transaction.database.arrays(sql, queueId)) {
    loseTrack(transaction, { letterId: letterId as string, redrives: redrives as number })
  }
}

/** Campaigns whose letters in this queue are under way hear nothing more of them. */
function tellCampaigns(transaction: Transaction, queueId: number): void {
  const sql = 'select root_id, letter from items where queue_id = ? and letter_state = ?'
  for (const [rootId, letter] of transaction.database.arrays(sql, queueId, listedCodes.leased)) {
    const facts = factsFromText(letter as string | null, null)
    forgetLetter(transaction, { state: 'leased', letter: facts, rootId: rootId as string })
  }
}
