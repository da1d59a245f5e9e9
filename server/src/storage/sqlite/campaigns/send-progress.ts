/**
 * How a redrive records which letters of a campaign it sent. A step of a campaign sends the next letters of
 * the set in order, so one number (`sent_until`) records it: every letter at or below it without a state of
 * its own counts as sent. Only letters that are sent out of order get a state of their own.
 */
import type { FrozenPosition } from '../../contract/campaigns.ts'
import type { RedriveLetters, RedriveRefusal } from '../../contract/letters.ts'
import { toStateCode } from '../../shared/letters/campaign-rows.ts'
import { refuseRepeatedSend } from '../../shared/letters/campaign-rules.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Transaction } from '../transaction.ts'
import { moveLetter, readLetterState, readSentUntil } from './campaign-letters.ts'

type Position = FrozenPosition | null | undefined

export interface SendProgress {
  /** The reason not to send the letter: it was already sent or skipped. */
  findRefusal(position: Position): RedriveRefusal | undefined
  send(position: Position): void
  skip(position: Position, refusal: string): void
  /** Call it once all letters are sent or skipped. */
  write(): void
}

export function trackSendProgress(transaction: Transaction, command: RedriveLetters): SendProgress {
  const positions = command.letters.flatMap(({ campaign }) => campaign ?? [])
  return trackNextLetters(transaction, command, positions) ?? trackAnyLetters(transaction, command)
}

/** Undefined unless these are exactly the next letters of one campaign. */
function trackNextLetters(
  transaction: Transaction,
  { now }: RedriveLetters,
  positions: readonly FrozenPosition[],
): SendProgress | undefined {
  const { database, countChanges } = transaction
  const id = positions[0]?.id
  if (id === undefined || positions.some((position) => position.id !== id)) return undefined
  const places = new Set(positions.map(({ position }) => position))
  const last = positions.reduce((max, { position }) => Math.max(max, position), 0)
  const next = database.readArrays(
    'select place from campaign_letters where campaign_id = ? and state = ? and place > ? and place <= ? limit +?',
    id,
    toStateCode('pending'),
    readSentUntil(database, id),
    last,
    positions.length + 1,
  )
  const areNext = next.length === positions.length && next.every((row) => places.has(readNumber(row, 0)))
  if (!areNext || places.size !== positions.length) return undefined
  return {
    findRefusal: () => undefined,
    send: () => {},
    // `write` marks all of them as sent, so a skipped letter starts from `sent`.
    skip: (position, refusal) =>
      position && moveLetter(transaction, position, 'sent', 'skipped', refusal, now),
    write: () => {
      countChanges.letters.addToCampaign(id, toStateCode('pending'), -positions.length)
      countChanges.letters.addToCampaign(id, toStateCode('sent'), positions.length)
      database.run('update campaigns set sent_until = ? where id = ?', last, id)
    },
  }
}

function trackAnyLetters(transaction: Transaction, { now }: RedriveLetters): SendProgress {
  return {
    findRefusal: (position) =>
      refuseRepeatedSend(position && readLetterState(transaction.database, position)),
    send: (position) => position && moveLetter(transaction, position, 'pending', 'sent', '', null),
    skip: (position, refusal) =>
      position && moveLetter(transaction, position, 'pending', 'skipped', refusal, now),
    write: () => {},
  }
}
