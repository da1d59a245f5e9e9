/**
 * Whose turn it is among the letters of a campaign. A step takes the next ones of the set, so that they are sent
 * is said with one number: all up to its place that have no state of their own are. Only letters that are sent
 * out of turn are written one by one.
 */
import type { RedriveRecord } from '../../../core/item.ts'
import type { RedriveLetters, RedriveRefusal } from '../../contract/letters.ts'
import { refuseRepeatedSend } from '../../shared/campaign-rules.ts'
import type { Transaction } from '../transaction.ts'
import { campaignLetterState, campaignStateCode, moveLetter, sentUntil } from './campaigns.ts'

type FrozenPosition = NonNullable<RedriveRecord['campaign']>

export interface SendProgress {
  refusal(place: FrozenPosition | null | undefined): RedriveRefusal | undefined
  send(place: FrozenPosition | null | undefined): void
  skip(place: FrozenPosition | null | undefined, why: string): void
  /** When all had theirs. */
  write(): void
}

export function trackSendProgress(transaction: Transaction, command: RedriveLetters): SendProgress {
  const places = command.letters.flatMap(({ campaign }) => campaign ?? [])
  return trackNextLetters(transaction, command, places) ?? trackAnyLetters(transaction, command)
}

/** Undefined when these are not just the next ones of one campaign. */
function trackNextLetters(
  transaction: Transaction,
  { now }: RedriveLetters,
  places: readonly FrozenPosition[],
): SendProgress | undefined {
  const { database, tally } = transaction
  const id = places[0]?.id
  if (id === undefined || places.some((place) => place.id !== id)) return undefined
  const numbers = new Set(places.map(({ place }) => place))
  const last = places.reduce((max, { place }) => Math.max(max, place), 0)
  const next = database.arrays(
    'select place from campaign_letters where campaign_id = ? and state = ? and place > ? and place <= ? limit +?',
    id,
    campaignStateCode('pending'),
    sentUntil(database, id),
    last,
    places.length + 1,
  )
  const areNext = next.length === places.length && next.every(([place]) => numbers.has(place as number))
  if (!areNext || numbers.size !== places.length) return undefined
  return {
    refusal: () => undefined,
    send: () => {},
    // All of them are passed, so those that cannot be sent are told apart.
    skip: (place, why) => place && moveLetter(transaction, place, 'sent', 'skipped', why, now),
    write: () => {
      tally.letters.addToCampaign(id, campaignStateCode('pending'), -places.length)
      tally.letters.addToCampaign(id, campaignStateCode('sent'), places.length)
      database.run('update campaigns set sent_until = ? where id = ?', last, id)
    },
  }
}

function trackAnyLetters(transaction: Transaction, { now }: RedriveLetters): SendProgress {
  return {
    refusal: (place) =>
      place ? refuseRepeatedSend(campaignLetterState(transaction.database, place)) : undefined,
    send: (place) => place && moveLetter(transaction, place, 'pending', 'sent', '', null),
    skip: (place, why) => place && moveLetter(transaction, place, 'pending', 'skipped', why, now),
    write: () => {},
  }
}
