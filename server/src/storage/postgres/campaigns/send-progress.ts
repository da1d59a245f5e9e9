/**
 * Whose turn it is among the letters of a campaign. A step takes the next ones of the set, so that they are sent
 * is said with one number: all up to its place that have no state of their own are. Only letters that are sent
 * out of turn are written one by one.
 */
import type { Instant } from '../../../core/instant.ts'
import type { RedriveRecord } from '../../../core/item.ts'
import { type CampaignLetterState, campaignLetterStates } from '../../contract/campaigns.ts'
import type { RedriveLetters, RedriveRefusal } from '../../contract/letters.ts'
import { refuseRepeatedSend } from '../../shared/campaign-rules.ts'
import type { Statement } from '../connection/connections.ts'
import { int4s, texts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

type FrozenPosition = NonNullable<RedriveRecord['campaign']>

export interface SendProgress {
  refusal(place: FrozenPosition | null | undefined): RedriveRefusal | undefined
  send(place: FrozenPosition | null | undefined): void
  skip(place: FrozenPosition | null | undefined, why: string): void
  write(): Promise<void>
}

/** Which are pending up to a place, `$2`. Who sends for a campaign waits for others who do. */
export const readPendingPlaces: Statement = {
  name: 'count-turns',
  text: `select (
      select string_agg(l.place::text, ',' order by l.place::int8) from redrive.campaign_letters l
      where l.campaign_id = $1 and l.state = 0 and l.place::int8 > k.sent_until and l.place::int8 <= $2::int8) as places
    from redrive.campaigns k where k.id = $1 for update of k`,
}
const setSentUntil: Statement = {
  name: 'move-campaign-on',
  text: 'update redrive.campaigns set sent_until = $2 where id = $1',
}
export const readLetterStates: Statement = {
  name: 'find-turns',
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
  const places = letters.flatMap(({ campaign }) => (campaign ? [campaign] : []))
  const [first] = places
  if (first === undefined) return noCampaign
  const isOne = places.every(({ id }) => id === first.id)
  return (
    (isOne ? await trackNextLetters(transaction, first.id, places, now) : undefined) ??
    trackAnyLetters(transaction, places, now)
  )
}

const noCampaign: SendProgress = {
  refusal: () => undefined,
  send: () => {},
  skip: () => {},
  write: async () => {},
}

/** Undefined when these are not just the next ones. */
async function trackNextLetters(
  transaction: Transaction,
  campaignId: string,
  places: readonly FrozenPosition[],
  now: Instant,
): Promise<SendProgress | undefined> {
  const numbers = places.map(({ place }) => place).sort((left, right) => left - right)
  const last = numbers.at(-1) ?? 0
  const [row] = await transaction.connection.query(readPendingPlaces, [campaignId, last])
  if (row?.places !== numbers.join(',')) return undefined
  return {
    refusal: () => undefined,
    send: () => {},
    // All of them are passed, so those that cannot be sent are told apart.
    skip: (place, why) => transaction.campaigns.move(place, 'sent', 'skipped', why, now),
    write: async () => {
      transaction.campaigns.count(campaignId, 'pending', -places.length)
      transaction.campaigns.count(campaignId, 'sent', places.length)
      await transaction.connection.query(setSentUntil, [campaignId, last])
    },
  }
}

async function trackAnyLetters(
  transaction: Transaction,
  places: readonly FrozenPosition[],
  now: Instant,
): Promise<SendProgress> {
  const rows = await transaction.connection.query(readLetterStates, [
    texts(places.map(({ id }) => id)),
    int4s(places.map(({ place }) => place)),
  ])
  const keyOf = ({ id, place }: FrozenPosition) => `${place}/${id}`
  const states = new Map(
    rows.map((row) => [
      keyOf({ id: row.campaign_id as string, place: row.place as number }),
      campaignLetterStates[row.state as number] as CampaignLetterState,
    ]),
  )
  return {
    refusal: (place) => refuseRepeatedSend(place && states.get(keyOf(place))),
    send: (place) => transaction.campaigns.move(place, 'pending', 'sent', '', null),
    skip: (place, why) => transaction.campaigns.move(place, 'pending', 'skipped', why, now),
    write: async () => {},
  }
}
