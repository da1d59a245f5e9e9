/**
 * How the redrive of a letter ends: its item completed, died again, or is gone; or nobody said anything in
 * time. In the transaction of what ended it, with the campaign that sent it.
 */
import type { ItemHead, LeasedHead } from '../../../core/item.ts'
import { endRedrive, isRedriving, type RedriveEnd } from '../../../core/letter.ts'
import { createUnknownOutcome } from '../../../core/transitions.ts'
import { endCampaignLetter } from '../campaigns/campaign-letters.ts'
import { columnsWithout, headColumnList, itemColumns, toItemHead } from '../items/rows.ts'
import { rewriteRow } from '../items/write-rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'

export type FoundLetter = Readonly<{ queueRow: QueueRow; letter: ItemHead; rowid: number }>

/** The first condition is that of the index, word for word. */
export const isLetterSql = '(source_id is not null or group_id is not null) and group_id is not null'
const findSql = `select ${headColumnList}, rowid from items where ${isLetterSql} and root_id = ?`
/** Why it failed is not asked for when it is sent. */
const findToSendSql = `select ${columnsWithout(['key', 'headers', 'payload', 'failure', 'history'])}, rowid from items
  where ${isLetterSql} and root_id = ?`
const rowidPlace = itemColumns.length

/** A live letter, without its bytes. */
export function findLetter(transaction: Transaction, letterId: string): FoundLetter | undefined {
  return find(transaction, findSql, letterId)
}

/** The same without its failures. */
export function findToSend(transaction: Transaction, letterId: string): FoundLetter | undefined {
  return find(transaction, findToSendSql, letterId)
}

function find({ database, queueCache }: Transaction, sql: string, letterId: string): FoundLetter | undefined {
  const row = database.array(sql, letterId)
  if (row === undefined) return undefined
  const queueRow = queueCache.getById(row[0] as number)
  return { queueRow, letter: toItemHead(row, queueRow.queue.name), rowid: row[rowidPlace] as number }
}

/** Why no live letter was found. */
export function whyNotThere({ database }: Transaction, letterId: string): 'missing' | 'archived' {
  const sql = 'select 1 from archive where root_id = ? and group_id is not null'
  return database.array(sql, letterId) === undefined ? 'missing' : 'archived'
}

type Redrive = Pick<ItemHead, 'letterId' | 'redrives'>

/** The letter that waits for the outcome of this item; undefined when it waits for another, or for none. */
export function letterOf(
  transaction: Transaction,
  item: Redrive,
): Readonly<{ queueRow: QueueRow; letter: LeasedHead }> | undefined {
  if (item.letterId === null) return undefined
  const found = findLetter(transaction, item.letterId)
  if (found?.letter.state !== 'leased' || !isRedriving(found.letter)) return undefined
  if (found.letter.letter?.redrives[0]?.number !== item.redrives) return undefined
  return { queueRow: found.queueRow, letter: found.letter }
}

export function endLetter(
  transaction: Transaction,
  queueRow: QueueRow,
  letter: LeasedHead,
  end: Omit<RedriveEnd, 'chance'>,
): ItemHead {
  const campaign = letter.letter?.redrives[0]?.campaign
  const after = endRedrive(
    letter,
    { ...end, chance: transaction.queueCache.random() },
    queueRow.queue.redrive,
  )
  rewriteRow(transaction, queueRow, letter, after)
  if (campaign) endCampaignLetter(transaction, campaign, end.outcome, end.at)
  return after
}

/** The item is gone, and nobody can tell whether it was processed. */
export function loseTrack(transaction: Transaction, item: Redrive): void {
  const found = letterOf(transaction, item)
  if (found === undefined) return
  const at = transaction.now()
  const failure = createUnknownOutcome(found.letter, at)
  endLetter(transaction, found.queueRow, found.letter, { outcome: 'unknown', failure, at })
}

/** Of a letter that is deleted while it is under way the campaign will hear nothing more. */
export function forgetLetter(
  transaction: Transaction,
  letter: Pick<ItemHead, 'state' | 'letter' | 'rootId'>,
): void {
  transaction.database.run('delete from letter_edits where letter_id = ?', letter.rootId)
  const campaign = letter.letter?.redrives[0]?.campaign
  if (campaign && isRedriving(letter)) endCampaignLetter(transaction, campaign, 'unknown', transaction.now())
}
