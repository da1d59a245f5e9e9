/** Producers and channels. */
import { decidePut } from '../../../core/webhook/put.ts'
import type {
  Channel,
  PageQuery,
  Producer,
  PutChannel,
  PutProducer,
  PutResult,
} from '../../contract/webhooks.ts'
import { createQueueEntries } from '../../shared/audit/audit-entries.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import { boundPage, toProducer } from '../../shared/rows/webhook-rows.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Bound, Database, Row } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

type EntityTable = 'webhook_producers' | 'webhook_channels'

export function putProducer({ database }: Transaction, command: PutProducer): PutResult<Producer> {
  return putEntity(database, 'webhook_producers', command)
}

export function putChannel({ database }: Transaction, command: PutChannel): PutResult<Channel> {
  return putEntity(database, 'webhook_channels', command)
}

function putEntity(
  database: Database,
  table: EntityTable,
  command: PutProducer | PutChannel,
): PutResult<Producer> {
  const { id, name, token, xid, condition, now } = command
  const before = getEntity(database, table, id)
  const isSame = before?.name === name && before.token === token
  const decision = decidePut(before, isSame, condition, now)
  if (decision.outcome === 'create' || decision.outcome === 'update')
    insertAudit(database, createQueueEntries(command.audit, id, 1, { name }))
  switch (decision.outcome) {
    case 'create': {
      const sql = `insert into ${table} (id, name, token, xid, created_at, changed_at) values (?, ?, ?, ?, ?, ?)`
      const row = { id, name, token, xid, createdAt: now, changedAt: decision.changedAt }
      database.run(sql, id, name, token, xid, now, decision.changedAt)
      return { outcome: 'created', row }
    }
    case 'update': {
      const sql = `update ${table} set name = ?, token = ?, changed_at = ? where id = ?`
      database.run(sql, name, token, decision.changedAt, id)
      return {
        outcome: 'updated',
        row: { ...(before as Producer), name, token, changedAt: decision.changedAt },
      }
    }
    case 'unchanged':
      return { outcome: 'unchanged', row: before as Producer }
    default:
      return { outcome: decision.outcome }
  }
}

export function getEntity(database: Database, table: EntityTable, id: string): Producer | undefined {
  const row = database.get(`select * from ${table} where id = ?`, id)
  return row && toProducer(row)
}

/** The number of a channel; undefined: there is none. */
export function findChannelNumber(database: Database, id: string): number | undefined {
  const row = database.get('select number from webhook_channels where id = ?', id)
  return row && readNumber(row, 'number')
}

export function listEntities(database: Database, table: EntityTable, page: PageQuery): Producer[] {
  return readPage(database, `select t.* from ${table} t where true`, [], page).map(toProducer)
}

/** `sql`: selects from a table `t` with a condition, and needs the values. */
export function readPage(database: Database, sql: string, values: readonly Bound[], page: PageQuery): Row[] {
  const bounds = boundPage(page, 't', () => '?')
  const rows = database.all(
    `${sql} ${bounds.condition} order by ${bounds.order} limit +?`,
    ...values,
    ...bounds.values,
    page.countMax,
  )
  return bounds.isReversed ? rows.reverse() : rows
}
