/**
 * How a redrive records which letters of a campaign it sent. A step of a campaign sends the next letters of
 * the set in order, so one number (`sent_until`) records it: every letter at or below it without a state of
 * its own counts as sent. Only letters that are sent out of order get a state of their own.
 */
import type { Instant } from '../../../core/time/instant.ts'
import type { FrozenPosition } from '../../contract/campaigns.ts'
import type { RedriveLetters, RedriveRefusal } from '../../contract/letters.ts'
import { toLetterState } from '../../shared/letters/campaign-rows.ts'
import { refuseRepeatedSend } from '../../shared/letters/campaign-rules.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

type Position = FrozenPosition | null | undefined

export interface SendProgress {
  /** The reason not to send the letter: it was already sent or skipped. */
  findRefusal(position: Position): RedriveRefusal | undefined
  send(position: Position): void
  skip(position: Position, refusal: string): void
  /** Call it once all letters are sent or skipped. */
  write(): Promise<void>
}

/** The pending places up to `$2`. Locks the campaign: its senders wait for each other. */
export const readPendingPlaces: Statement = {
  name: 'read-pending-places',
  text: `select (
      select string_agg(l.place::text, ',' order by l.place::int8) from redrive.campaign_letters l
      where l.campaign_id = $1 and l.state = 0 and l.place::int8 > k.sent_until and l.place::int8 <= $2::int8) as places
    from redrive.campaigns k where k.id = $1 for update of k`,
}
const setSentUntil: Statement = {
  name: 'set-sent-until',
  text: 'update redrive.campaigns set sent_until = $2 where id = $1',
}
export const readLetterStates: Statement = {
  name: 'read-letter-states',
  text: `select w.campaign_id, w.place, c.state from unnest($1::text[], $2::int4[]) as w(campaign_id, place)
    cross join lateral (
      select case when f.state = 0 and f.place <= (
          select k.sent_until from redrive.campaigns k where k.id = w.campaign_id) then 1 else f.state end as state
      from redrive.campaign_letters f
      where f.place = w.place and f.campaign_id || '' = w.campaign_id offset 0) c`,
}

export async function trackSendProgress(
  transaction: Transaction,
  { letters, now }: RedriveLetters,
): Promise<SendProgress> {
  const positions = letters.flatMap(({ campaign }) => (campaign ? [campaign] : []))
  const [first] = positions
  if (first === undefined) return noCampaign
  const isOneCampaign = positions.every(({ id }) => id === first.id)
  return (
    (isOneCampaign ? await trackNextLetters(transaction, first.id, positions, now) : undefined) ??
    trackAnyLetters(transaction, positions, now)
  )
}

const noCampaign: SendProgress = {
  findRefusal: () => undefined,
  send: () => {},
  skip: () => {},
  write: async () => {},
}

/** Undefined unless these are exactly the next letters of the campaign. */
async function trackNextLetters(
  transaction: Transaction,
  campaignId: string,
  positions: readonly FrozenPosition[],
  now: Instant,
): Promise<SendProgress | undefined> {
  const places = positions.map(({ position }) => position).sort((left, right) => left - right)
  const last = places.at(-1) ?? 0
  const [row] = await transaction.connection.query(readPendingPlaces, [campaignId, last])
  if (row?.places !== places.join(',')) return undefined
  return {
    findRefusal: () => undefined,
    send: () => {},
    // `write` marks all of them as sent, so a skipped letter starts from `sent`.
    skip: (position, refusal) => transaction.campaigns.move(position, 'sent', 'skipped', refusal, now),
    write: async () => {
      transaction.campaigns.count(campaignId, 'pending', -positions.length)
      transaction.campaigns.count(campaignId, 'sent', positions.length)
      await transaction.connection.query(setSentUntil, [campaignId, last])
    },
  }
}

async function trackAnyLetters(
  transaction: Transaction,
  positions: readonly FrozenPosition[],
  now: Instant,
): Promise<SendProgress> {
  const rows = await transaction.connection.query(readLetterStates, [
    encodeTexts(positions.map(({ id }) => id)),
    encodeInt4s(positions.map(({ position }) => position)),
  ])
  const toKey = ({ id, position }: FrozenPosition) => `${position}/${id}`
  const states = new Map(
    rows.map((row) => [
      toKey({ id: readText(row, 'campaign_id'), position: readNumber(row, 'place') }),
      toLetterState(readNumber(row, 'state')),
    ]),
  )
  return {
    findRefusal: (position) => refuseRepeatedSend(position && states.get(toKey(position))),
    send: (position) => transaction.campaigns.move(position, 'pending', 'sent', '', null),
    skip: (position, refusal) => transaction.campaigns.move(position, 'pending', 'skipped', refusal, now),
    write: async () => {},
  }
}
