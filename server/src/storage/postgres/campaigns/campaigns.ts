import { KnownError } from '../../../errors.ts'
import {
  type CampaignCounts,
  type CampaignDocument,
  type CampaignLetter,
  type CampaignLetterState,
  type CampaignLettersQuery,
  type CampaignsQuery,
  campaignLetterStates,
  type FreezeIds,
  type FreezeLetters,
  type FreezeResult,
  type PutCampaign,
  type SkipLetters,
  type StoredCampaign,
} from '../../contract/campaigns.ts'
import type { Connections, Row, Statement } from '../connection/connections.ts'
import { int4s, texts } from '../connection/encode-arrays.ts'
import { findLetters } from '../letters/list-letters.ts'
import type { Transaction } from '../transaction.ts'
import { campaignStateCode } from './campaign-letters.ts'

const int4Max = 2 ** 31 - 1

const insertCampaign: Statement = {
  name: 'make-campaign',
  text: `insert into redrive.campaigns (id, version, state, document) values ($1, 1, $2, $3)
    on conflict (id) do nothing returning 1`,
}
const updateCampaign: Statement = {
  name: 'change-campaign',
  text: `update redrive.campaigns set version = version + 1, state = $2, document = $3
    where id = $1 and version = $4 returning 1`,
}

export async function putCampaign(
  { connection }: Transaction,
  command: PutCampaign,
): Promise<{ isPut: boolean }> {
  const { id, version, state } = command
  const values = [id, state, JSON.stringify(command.document)]
  const rows =
    version === 0
      ? await connection.query(insertCampaign, values)
      : await connection.query(updateCampaign, [...values, version])
  if (rows.length === 0 && command.isRequired === true) {
    throw new KnownError('CAMPAIGN_CHANGED', `campaign ${id} is not at version ${version} any more`)
  }
  return { isPut: rows.length === 1 }
}

export async function freezeLetters(transaction: Transaction, command: FreezeLetters): Promise<FreezeResult> {
  // What this transaction changed so far is looked for by its counts, too.
  await transaction.flushLetters()
  const { filter, after, countMax, lookMax } = command
  const order = { order: 'diedAt', isDescending: false, ...(after === undefined ? {} : { after }) } as const
  const found = await findLetters(transaction.connection, { filter, ...order, countMax, lookMax })
  const added = await addToSet(transaction, command.campaignId, found.letterIds)
  return { added, looked: found.looked, next: found.next }
}

export async function freezeIds(transaction: Transaction, command: FreezeIds): Promise<{ added: number }> {
  return { added: await addToSet(transaction, command.campaignId, command.letterIds) }
}

/** One at a time for each campaign: places are numbered without a gap. */
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
          where l.letter_id = w.letter_id and l.campaign_id || '' = $1 offset 0) there on true
      where there.place is null
    ), added as (
      insert into redrive.campaign_letters (campaign_id, place, letter_id, state)
      select $1, (select place from last) + f.number, f.letter_id, 0 from fresh f returning 1
    )
    select count(*) as n from added`,
}
/** Of what is no id only so much is kept. */
const idLengthMax = 200

async function addToSet(
  transaction: Transaction,
  campaignId: string,
  letterIds: readonly string[],
): Promise<number> {
  const wanted = new Set(letterIds.map((id) => id.slice(0, idLengthMax).replaceAll('\0', ' ').toWellFormed()))
  if (wanted.size === 0) return 0
  await transaction.connection.query(lockSet, [campaignId])
  const [row] = await transaction.connection.query(addLetters, [campaignId, texts([...wanted])])
  const added = row?.n as number
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
  const { campaignId, why, countMax } = command
  const [row] = await transaction.connection.query(skipPending, [campaignId, why, countMax])
  const skipped = row?.n as number
  transaction.campaigns.count(campaignId, 'pending', -skipped)
  transaction.campaigns.count(campaignId, 'skipped', skipped)
  return { skipped }
}

/** With the sums of its counts: an array, one place for each state. */
const counted = `(select array_to_json(array_agg(s.n)) from (
    select coalesce((select sum(c.n) from redrive.campaign_counts c
      where c.campaign_id = k.id and c.state = e.state), 0) as n
    from generate_series(0, ${campaignLetterStates.length - 1}) as e(state) order by e.state) s)::text as counts`

const readCampaign: Statement = {
  name: 'read-campaign',
  text: `select k.*, ${counted} from redrive.campaigns k where k.id = $1`,
}
/** Of each state a page, and the first of all. */
const pageOfCampaigns: Statement = {
  name: 'page-of-campaigns',
  text: `select k.*, ${counted} from (
      select p.* from unnest($1::text[]) as s(state) cross join lateral (
        select f.* from redrive.campaigns f where f.state = s.state and ($2::text is null or f.id < $2)
        order by f.id desc limit $3) p order by p.id desc limit $3
    ) k order by k.id desc`,
}
const pageOfAllCampaigns: Statement = {
  name: 'page-of-all-campaigns',
  text: `select k.*, ${counted} from (
      select f.* from redrive.campaigns f where ($1::text is null or f.id < $1) order by f.id desc limit $2
    ) k order by k.id desc`,
}

export async function getCampaign(connections: Connections, id: string): Promise<StoredCampaign | null> {
  if (id.includes('\0')) return null
  const [row] = await connections.read(readCampaign, [id])
  return row === undefined ? null : toStoredCampaign(row)
}

export async function listCampaigns(
  connections: Connections,
  query: CampaignsQuery,
): Promise<StoredCampaign[]> {
  const { states, beforeId = null, countMax } = query
  const rows =
    states === undefined
      ? await connections.read(pageOfAllCampaigns, [beforeId, countMax])
      : await connections.read(pageOfCampaigns, [texts([...new Set(states)]), beforeId, countMax])
  return rows.map(toStoredCampaign)
}

function toStoredCampaign(row: Row): StoredCampaign {
  const sums = JSON.parse(row.counts as string) as number[]
  return {
    id: row.id as string,
    version: row.version as number,
    state: row.state as string,
    document: JSON.parse(row.document as string) as CampaignDocument,
    counts: Object.fromEntries(
      campaignLetterStates.map((state, code) => [state, sums[code] ?? 0]),
    ) as CampaignCounts,
  }
}

/**
 * Each state from its own place in the index: a million that are done are not walked over. Of those that are
 * pending by their own row, the ones up to where the campaign sent are `sent`.
 */
export const pageOfSet: Statement = {
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
  const { campaignId, states = campaignLetterStates, afterPlace = -1, countMax } = query
  const codes = [...new Set(states)].map(campaignStateCode)
  const rows = await connections.read(pageOfSet, [campaignId, int4s(codes), afterPlace, countMax])
  return rows.map((row) => ({
    place: row.place as number,
    letterId: row.letter_id as string,
    state: campaignLetterStates[row.state as number] as CampaignLetterState,
    why: row.why as string,
    at: row.at as number | null,
  }))
}
