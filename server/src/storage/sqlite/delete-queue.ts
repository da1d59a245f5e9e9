import type { LetterFacts } from '../../core/item.ts'
import { queueInUse } from '../queue-checks.ts'
import type { DeleteQueue } from '../storage.ts'
import { forgetLetter, loseTrack } from './letter-end.ts'
import { namedAsDeadQueueBy } from './queues.ts'
import { listedCodes } from './rows.ts'
import type { Transaction } from './transaction.ts'

/** All that a queue has; the groups go with their letters. */
const tables = ['archive', 'counts', 'produce_keys', 'letter_edits', 'letter_counts', 'open_minutes']

export function deleteQueue(transaction: Transaction, command: DeleteQueue): { removed: number } {
  const { database, book, groups, tally } = transaction
  const { id } = book.get(command.name)
  const user = namedAsDeadQueueBy(database, command.name)
  if (user !== undefined) throw queueInUse(command.name, user)
  tellLetters(transaction, id)
  tellCampaigns(transaction, id)
  const removed = database.run('delete from items where queue_id = ?', id)
  for (const table of tables) database.run(`delete from ${table} where queue_id = ?`, id)
  database.run('delete from group_hours where group_id in (select id from groups where queue_id = ?)', id)
  database.run('delete from groups where queue_id = ?', id)
  database.run('delete from queues where id = ?', id)
  tally.drop(id)
  book.forget()
  groups.forget()
  return { removed }
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
    const facts = JSON.parse(letter as string) as LetterFacts
    forgetLetter(transaction, { state: 'leased', letter: facts, rootId: rootId as string })
  }
}
