/** What becomes of the letters of a campaign: written with the letters, in the same transaction. */
import type { Instant } from '../../../core/instant.ts'
import type { RedriveRecord } from '../../../core/item.ts'
import { type CampaignLetterState, campaignLetterStates } from '../../contract/campaigns.ts'
import type { Connection, Row, Statement } from '../connection/connections.ts'
import { int4s, int8s, texts } from '../connection/encode-arrays.ts'

export type FrozenPosition = NonNullable<RedriveRecord['campaign']>

export function campaignStateCode(state: CampaignLetterState): number {
  return campaignLetterStates.indexOf(state)
}

type Move = Readonly<{
  place: FrozenPosition
  from: CampaignLetterState
  to: CampaignLetterState
  why: string
  at: Instant | null
}>

/**
 * Only what still is what it was thought to be. What was sent may be pending by its own row, see campaign-turns.ts.
 * (`|| ''`: an index that begins with the campaign is no way to a place.)
 */
export const moveLetters: Statement = {
  name: 'move-campaign-letters',
  text: `update redrive.campaign_letters l set state = m.after, why = m.why, at = m.at
    from unnest($1::text[], $2::int4[], $3::int4[], $4::int4[], $5::text[], $6::int8[])
      as m(campaign_id, place, before, after, why, at)
    where l.place = m.place and l.campaign_id || '' = m.campaign_id 
      and case m.before
        when ${campaignStateCode('pending')} then l.state = m.before
          and l.place > (select k.sent_until from redrive.campaigns k where k.id = m.campaign_id)
        when ${campaignStateCode('sent')} then l.state in (m.before, ${campaignStateCode('pending')})
        else l.state = m.before end
    returning l.campaign_id, m.before, m.after`,
}

const addToCampaigns: Statement = {
  name: 'add-to-campaign-counts',
  text: `insert into redrive.campaign_counts as c (campaign_id, state, slot, n)
    select d.campaign_id, d.state, $4::int4, d.n from unnest($1::text[], $2::int4[], $3::int8[]) as d(campaign_id, state, n)
    on conflict (campaign_id, state, slot) do update set n = c.n + excluded.n`,
}

export class CampaignTally {
  readonly #moves = new Map<string, Move>()
  readonly #counts = new Map<string, { campaignId: string; state: number; n: number }>()

  move(
    place: FrozenPosition | null | undefined,
    from: CampaignLetterState,
    to: CampaignLetterState,
    why: string,
    at: Instant | null,
  ): void {
    if (place === null || place === undefined) return
    const key = `${place.place}/${place.id}`
    const before = this.#moves.get(key)
    if (before !== undefined && before.to !== from) return
    this.#moves.set(key, { place, from: before?.from ?? from, to, why, at })
  }

  count(campaignId: string, state: CampaignLetterState, by: number): void {
    this.#add(campaignId, campaignStateCode(state), by)
  }

  async writeMoves(connection: Connection): Promise<Row[]> {
    if (this.#moves.size === 0) return []
    const moves = [...this.#moves.values()].sort(
      (a, b) => compare(a.place.id, b.place.id) || a.place.place - b.place.place,
    )
    return connection.query(moveLetters, [
      texts(moves.map(({ place }) => place.id)),
      int4s(moves.map(({ place }) => place.place)),
      int4s(moves.map(({ from }) => campaignStateCode(from))),
      int4s(moves.map(({ to }) => campaignStateCode(to))),
      texts(moves.map(({ why }) => why)),
      int8s(moves.map(({ at }) => at)),
    ])
  }

  async writeCounts(connection: Connection, moved: readonly Row[], slot: number): Promise<void> {
    for (const row of moved) {
      this.#add(row.campaign_id as string, row.before as number, -1)
      this.#add(row.campaign_id as string, row.after as number, 1)
    }
    const counts = [...this.#counts.values()]
      .filter(({ n }) => n !== 0)
      .sort((a, b) => compare(a.campaignId, b.campaignId) || a.state - b.state)
    if (counts.length === 0) return
    await connection.query(addToCampaigns, [
      texts(counts.map(({ campaignId }) => campaignId)),
      int4s(counts.map(({ state }) => state)),
      int8s(counts.map(({ n }) => n)),
      slot,
    ])
  }

  #add(campaignId: string, state: number, by: number): void {
    const key = `${state}/${campaignId}`
    const count = this.#counts.get(key)
    if (count === undefined) this.#counts.set(key, { campaignId, state, n: by })
    else count.n += by
  }
}

function compare(left: string, right: string): number {
  return left < right ? -1 : Number(left > right)
}
