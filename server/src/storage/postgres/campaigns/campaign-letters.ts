/**
 * The frozen set of a campaign, and the state of each letter in it.
 *
 * A row with the state `pending` at or below the campaign's `sent_until` stands for a sent letter
 * (send-progress.ts), so a step does not have to write every row.
 *
 * Statements write `campaign_id || ''` where PostgreSQL must not choose an index that starts with the
 * campaign.
 */

import { toStorableText } from '../../../core/text/storable-text.ts'
import type { Instant } from '../../../core/time/instant.ts'
import {
  type CampaignLetter,
  type CampaignLetterState,
  type CampaignLettersQuery,
  campaignLetterStates,
  type FreezeIds,
  type FreezeLetters,
  type FreezeResult,
  type FrozenPosition,
  type SkipLetters,
} from '../../contract/campaigns.ts'
import { stepMs } from '../../search/pacer.ts'
import { searchLetters } from '../../search/search-letters.ts'
import { toCampaignLetter, toStateCode } from '../../shared/letters/campaign-rows.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { findRanges } from '../letters/scan-letters.ts'
import type { Transaction } from '../transaction.ts'

const int4Max = 2 ** 31 - 1
/** An id that is no letter can be of any length: this much of it is stored. */
const idLengthMax = 200

const readArrivedUntil: Statement = {
  name: 'read-arrived-until',
  text: 'select arrived_until from redrive.campaigns where id = $1',
}

export async function freezeLetters(transaction: Transaction, command: FreezeLetters): Promise<FreezeResult> {
  // The search uses the counts, so they must contain the changes of this transaction.
  await transaction.flushLetters()
  const { filter, after, countMax, examinedMax } = command
  const order = {
    order: 'deadLetteredAt',
    isDescending: false,
    ...(after === undefined ? {} : { after }),
  } as const
  const [campaign] = await transaction.connection.query(readArrivedUntil, [command.campaignId])
  const arrived = campaign === undefined ? {} : { arrivedUntil: readNumber(campaign, 'arrived_until') }
  const { found, examinedCount, next } = await searchLetters(
    { findRanges: (query) => findRanges(transaction.connection, query) },
    { filter, ...order, ...arrived, countMax, bytes: 'none' },
    // The transaction ends after about one step, because other writes wait for its locks.
    { examinedMax, msMax: stepMs },
  )
  const letterIds = found.map(({ item }) => item.rootId)
  return { added: await addToSet(transaction, command.campaignId, letterIds), examinedCount, next }
}

export async function freezeIds(transaction: Transaction, command: FreezeIds): Promise<{ added: number }> {
  return { added: await addToSet(transaction, command.campaignId, command.letterIds) }
}

/** One transaction at a time adds letters to a set, so that places have no gaps. */
const lockSet: Statement = {
  name: 'lock-campaign-set',
  text: `select pg_advisory_xact_lock(hashtext('redrive campaign'), hashtext($1))`,
}
export const addLetters: Statement = {
  name: 'add-campaign-letters',
  text: `with last as materialized (
      select coalesce(max(p.place), 0) as place
      from generate_series(0, ${campaignLetterStates.length - 1}) as s(state) cross join lateral (
        select l.place from redrive.campaign_letters l where l.campaign_id = $1 and l.state = s.state
        order by l.place::int8 desc limit 1) p
    ), fresh as materialized (
      select w.letter_id, row_number() over (order by w.n) as number
      from unnest($2::text[]) with ordinality as w(letter_id, n)
        left join lateral (
          select l.place from redrive.campaign_letters l
          where l.letter_id = w.letter_id and l.campaign_id || '' = $1 offset 0) existing on true
      where existing.place is null
    ), added as (
      insert into redrive.campaign_letters (campaign_id, place, letter_id, state)
      select $1, (select place from last) + f.number, f.letter_id, 0 from fresh f returning 1
    )
    select count(*) as n from added`,
}

/** Adds the letters that are not in the set yet, and returns their number. */
async function addToSet(
  transaction: Transaction,
  campaignId: string,
  letterIds: readonly string[],
): Promise<number> {
  const wanted = new Set(letterIds.map((id) => toStorableText(id.slice(0, idLengthMax))))
  if (wanted.size === 0) return 0
  await transaction.connection.query(lockSet, [campaignId])
  const [row = {}] = await transaction.connection.query(addLetters, [campaignId, encodeTexts([...wanted])])
  const added = readNumber(row, 'n')
  transaction.campaigns.count(campaignId, 'pending', added)
  return added
}

export const skipPending: Statement = {
  name: 'skip-campaign-letters',
  text: `with picked as materialized (
      select l.place from redrive.campaign_letters l where l.campaign_id = $1 and l.state = 0
        and l.place::int8 > (select k.sent_until from redrive.campaigns k where k.id = $1)
      order by l.place::int8 limit $3 for update
    ), skipped as (
      update redrive.campaign_letters l set state = 5, why = $2 from picked p
      where l.place = p.place and l.campaign_id || '' = $1 returning 1
    )
    select count(*) as n from skipped`,
}

export async function skipLetters(
  transaction: Transaction,
  command: SkipLetters,
): Promise<{ skipped: number }> {
  const { campaignId, refusal, countMax } = command
  const [row = {}] = await transaction.connection.query(skipPending, [campaignId, refusal, countMax])
  const skipped = readNumber(row, 'n')
  transaction.campaigns.count(campaignId, 'pending', -skipped)
  transaction.campaigns.count(campaignId, 'skipped', skipped)
  return { skipped }
}

/**
 * Each state is read from its own part of the index, so that a million ended letters are not read. A pending
 * row at or below `sent_until` is shown as `sent`.
 */
export const readSetPage: Statement = {
  name: 'page-of-campaign-letters',
  text: `select p.* from redrive.campaigns k
    cross join lateral (
      select s.state as shown, s.state as kept, case s.state when 0 then k.sent_until else -1 end as low, ${int4Max} as high
      from unnest($2::int4[]) as s(state)
      union all select 1, 0, -1, k.sent_until from unnest($2::int4[]) as s(state) where s.state = 1
    ) r cross join lateral (
      select l.place, l.letter_id, r.shown as state, l.why, l.at from redrive.campaign_letters l
      where l.campaign_id = $1 and l.state = r.kept and l.place::int8 > greatest($3::int8, r.low)
        and l.place::int8 <= r.high
      order by l.place::int8 limit $4
    ) p where k.id = $1 order by p.place limit $4`,
}

export async function listCampaignLetters(
  connections: Connections,
  query: CampaignLettersQuery,
): Promise<CampaignLetter[]> {
  const { campaignId, states = campaignLetterStates, afterPosition = -1, countMax } = query
  const codes = [...new Set(states)].map(toStateCode)
  const rows = await connections.read(readSetPage, [campaignId, encodeInt4s(codes), afterPosition, countMax])
  return rows.map(toCampaignLetter)
}

type Move = Readonly<{
  position: FrozenPosition
  from: CampaignLetterState
  to: CampaignLetterState
  why: string
  at: Instant | null
}>

/** Changes only rows that still have the expected state. */
export const moveLetters: Statement = {
  name: 'move-campaign-letters',
  text: `update redrive.campaign_letters l set state = m.after, why = m.why, at = m.at
    from unnest($1::text[], $2::int4[], $3::int4[], $4::int4[], $5::text[], $6::int8[])
      as m(campaign_id, place, before, after, why, at)
    where l.place = m.place and l.campaign_id || '' = m.campaign_id
      and case m.before
        when ${toStateCode('pending')} then l.state = m.before
          and l.place > (select k.sent_until from redrive.campaigns k where k.id = m.campaign_id)
        when ${toStateCode('sent')} then l.state in (m.before, ${toStateCode('pending')})
        else l.state = m.before end
    returning l.campaign_id, m.before, m.after`,
}

const addToCampaigns: Statement = {
  name: 'add-to-campaign-counts',
  text: `insert into redrive.campaign_counts as c (campaign_id, state, slot, n)
    select d.campaign_id, d.state, $4::int4, d.n from unnest($1::text[], $2::int4[], $3::int8[]) as d(campaign_id, state, n)
    on conflict (campaign_id, state, slot) do update set n = c.n + excluded.n`,
}

/**
 * The changes that one transaction makes to the letters of campaigns, written as one statement before its
 * commit.
 */
export class CampaignChanges {
  readonly #moves = new Map<string, Move>()
  readonly #counts = new Map<string, { campaignId: string; state: number; n: number }>()

  /** Changes the state of a letter if it is still `from` when the transaction writes it. */
  move(
    position: FrozenPosition | null | undefined,
    from: CampaignLetterState,
    to: CampaignLetterState,
    why: string,
    at: Instant | null,
  ): void {
    if (position === null || position === undefined) return
    const key = `${position.position}/${position.id}`
    const before = this.#moves.get(key)
    if (before !== undefined && before.to !== from) return
    this.#moves.set(key, { position, from: before?.from ?? from, to, why, at })
  }

  count(campaignId: string, state: CampaignLetterState, by: number): void {
    this.#add(campaignId, toStateCode(state), by)
  }

  /** Writes the changed states, and returns the changes that took effect, for `writeCounts`. */
  async writeMoves(connection: Connection): Promise<Row[]> {
    if (this.#moves.size === 0) return []
    const moves = [...this.#moves.values()].sort(
      (a, b) => compare(a.position.id, b.position.id) || a.position.position - b.position.position,
    )
    return connection.query(moveLetters, [
      encodeTexts(moves.map(({ position }) => position.id)),
      encodeInt4s(moves.map(({ position }) => position.position)),
      encodeInt4s(moves.map(({ from }) => toStateCode(from))),
      encodeInt4s(moves.map(({ to }) => toStateCode(to))),
      encodeTexts(moves.map(({ why }) => why)),
      encodeInt8s(moves.map(({ at }) => at)),
    ])
  }

  async writeCounts(connection: Connection, moved: readonly Row[], slot: number): Promise<void> {
    for (const row of moved) {
      const campaignId = readText(row, 'campaign_id')
      this.#add(campaignId, readNumber(row, 'before'), -1)
      this.#add(campaignId, readNumber(row, 'after'), 1)
    }
    const counts = [...this.#counts.values()]
      .filter(({ n }) => n !== 0)
      .sort((a, b) => compare(a.campaignId, b.campaignId) || a.state - b.state)
    if (counts.length === 0) return
    await connection.query(addToCampaigns, [
      encodeTexts(counts.map(({ campaignId }) => campaignId)),
      encodeInt4s(counts.map(({ state }) => state)),
      encodeInt8s(counts.map(({ n }) => n)),
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
