import { isStorableText } from '../../../core/text/storable-text.ts'
import { KnownError } from '../../../errors.ts'
import {
  type CampaignsQuery,
  campaignLetterStates,
  type PutCampaign,
  type StoredCampaign,
} from '../../contract/campaigns.ts'
import { toCampaignCounts, toStoredCampaign } from '../../shared/letters/campaign-rows.ts'
import { readJson } from '../../shared/rows/row-values.ts'
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

const insertCampaign: Statement = {
  name: 'insert-campaign',
  text: `insert into redrive.campaigns (id, version, state, document, namespace) values ($1, 1, $2, $3, $4)
    on conflict (id) do nothing returning 1`,
}
const updateCampaign: Statement = {
  name: 'update-campaign',
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
      ? await connection.query(insertCampaign, [...values, command.namespace ?? ''])
      : await connection.query(updateCampaign, [...values, version])
  if (rows.length === 0 && command.isRequired === true) {
    throw new KnownError('CAMPAIGN_CHANGED', `campaign ${id} is no longer at version ${version}`)
  }
  return { isPut: rows.length === 1 }
}

/** The counts of a campaign: a JSON array with one sum per state. */
const countsColumn = `(select array_to_json(array_agg(s.n)) from (
    select coalesce((select sum(c.n) from redrive.campaign_counts c
      where c.campaign_id = k.id and c.state = e.state), 0) as n
    from generate_series(0, ${campaignLetterStates.length - 1}) as e(state) order by e.state) s)::text as counts`

const readCampaign: Statement = {
  name: 'read-campaign',
  text: `select k.*, ${countsColumn} from redrive.campaigns k where k.id = $1`,
}
/** A page of each state, merged. */
const readCampaignPage: Statement = {
  name: 'page-of-campaigns',
  text: `select k.*, ${countsColumn} from (
      select p.* from unnest($1::text[]) as s(state) cross join lateral (
        select f.* from redrive.campaigns f where f.state = s.state and ($2::text is null or f.id < $2)
          and ($4::text[] is null or f.namespace = any ($4::text[]))
        order by f.id desc limit $3) p order by p.id desc limit $3
    ) k order by k.id desc`,
}
const readAllCampaignsPage: Statement = {
  name: 'page-of-all-campaigns',
  text: `select k.*, ${countsColumn} from (
      select f.* from redrive.campaigns f where ($1::text is null or f.id < $1) order by f.id desc limit $2
    ) k order by k.id desc`,
}

/** A page of each namespace, merged. */
const readNamespacePage: Statement = {
  name: 'page-of-campaigns-in-namespaces',
  text: `select k.*, ${countsColumn} from (
      select p.* from unnest($1::text[]) as s(namespace) cross join lateral (
        select f.* from redrive.campaigns f where f.namespace = s.namespace and ($2::text is null or f.id < $2)
        order by f.id desc limit $3) p order by p.id desc limit $3
    ) k order by k.id desc`,
}

export async function getCampaign(connections: Connections, id: string): Promise<StoredCampaign | null> {
  if (!isStorableText(id)) return null
  const [row] = await connections.read(readCampaign, [id])
  return row === undefined ? null : toCampaign(row)
}

export async function listCampaigns(
  connections: Connections,
  query: CampaignsQuery,
): Promise<StoredCampaign[]> {
  return (await readPage(connections, query)).map(toCampaign)
}

function readPage(connections: Connections, query: CampaignsQuery): Promise<readonly Row[]> {
  const { states, namespaces, beforeId = null, countMax } = query
  const inNamespaces = namespaces && encodeTexts([...new Set(namespaces)].filter(isStorableText))
  if (states !== undefined) {
    const values = [encodeTexts([...new Set(states)]), beforeId, countMax, inNamespaces ?? null]
    return connections.read(readCampaignPage, values)
  }
  if (inNamespaces !== undefined)
    return connections.read(readNamespacePage, [inNamespaces, beforeId, countMax])
  return connections.read(readAllCampaignsPage, [beforeId, countMax])
}

function toCampaign(row: Row): StoredCampaign {
  const sums = readJson<readonly number[]>(row, 'counts')
  return toStoredCampaign(row, toCampaignCounts(new Map(sums.entries())))
}
