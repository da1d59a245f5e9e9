import { KnownError } from '../../../errors.ts'
import type { CampaignsQuery, PutCampaign, StoredCampaign } from '../../contract/campaigns.ts'
import { toCampaignCounts, toStoredCampaign } from '../../shared/letters/campaign-rows.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Bound, Database, Row } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

export function putCampaign({ database }: Transaction, command: PutCampaign): { isPut: boolean } {
  const { id, version, state, namespace = '' } = command
  const document = JSON.stringify(command.document)
  const put =
    version === 0
      ? insertCampaign(database, id, state, namespace, document)
      : database.run(
          'update campaigns set version = version + 1, state = ?, document = ? where id = ? and version = ?',
          state,
          document,
          id,
          version,
        )
  if (put === 0 && command.isRequired) {
    throw new KnownError('CAMPAIGN_CHANGED', `campaign ${id} is no longer at version ${version}`)
  }
  return { isPut: put === 1 }
}

/** Letters that arrive from now on have a higher number than the campaign. */
function insertCampaign(
  database: Database,
  id: string,
  state: string,
  namespace: string,
  document: string,
): number {
  const put = database.run(
    `insert into campaigns (id, version, state, namespace, document, arrived_until)
     values (?, 1, ?, ?, ?, (select number from arrivals)) on conflict do nothing`,
    id,
    state,
    namespace,
    document,
  )
  if (put === 1) database.run('update arrivals set number = number + 1')
  return put
}

export function getCampaign(database: Database, id: string): StoredCampaign | null {
  const row = database.get('select * from campaigns where id = ?', id)
  return row === undefined ? null : addCounts(database, row)
}

export function listCampaigns(database: Database, query: CampaignsQuery): StoredCampaign[] {
  const conditions: string[] = []
  const values: Bound[] = []
  if (query.states !== undefined) {
    conditions.push('state in (select value from json_each(?))')
    values.push(JSON.stringify(query.states))
  }
  if (query.namespaces !== undefined) {
    conditions.push('namespace in (select value from json_each(?))')
    values.push(JSON.stringify(query.namespaces))
  }
  if (query.beforeId !== undefined) {
    conditions.push('id < ?')
    values.push(query.beforeId)
  }
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  return database
    .all(`select * from campaigns ${where} order by id desc limit +?`, ...values, query.countMax)
    .map((row) => addCounts(database, row))
}

function addCounts(database: Database, row: Row): StoredCampaign {
  const sql = 'select state, n from campaign_counts where campaign_id = ?'
  const counts = database
    .readArrays(sql, readText(row, 'id'))
    .map((count) => [readNumber(count, 0), readNumber(count, 1)] as const)
  return toStoredCampaign(row, toCampaignCounts(new Map(counts)))
}
