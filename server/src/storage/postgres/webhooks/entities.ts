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
import type { Connection, Row } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import type { Transaction } from '../transaction.ts'

type EntityTable = 'webhook_producers' | 'webhook_channels'

export function putProducer({ connection }: Transaction, command: PutProducer): Promise<PutResult<Producer>> {
  return putEntity(connection, 'webhook_producers', command)
}

export function putChannel({ connection }: Transaction, command: PutChannel): Promise<PutResult<Channel>> {
  return putEntity(connection, 'webhook_channels', command)
}

/** Two requests that create or change the same row wait for each other here. */
export async function lockEntity(connection: Connection, kind: string, id: string): Promise<void> {
  await connection.query({ text: 'select pg_advisory_xact_lock(hashtext($1), hashtext($2))' }, [
    `redrive ${kind}`,
    id,
  ])
}

async function putEntity(
  connection: Connection,
  table: EntityTable,
  command: PutProducer | PutChannel,
): Promise<PutResult<Producer>> {
  const { id, name, token, xid, condition, now } = command
  await lockEntity(connection, table, id)
  const [found] = await connection.query({ text: `select * from redrive.${table} where id = $1` }, [id])
  const before = found && toProducer(found)
  const isSame = before?.name === name && before.token === token
  const decision = decidePut(before, isSame, condition, now)
  if (decision.outcome === 'create' || decision.outcome === 'update')
    await insertAudit(connection, createQueueEntries(command.audit, id, 1, { name }))
  switch (decision.outcome) {
    case 'create': {
      const text = `insert into redrive.${table} (id, name, token, xid, created_at, changed_at)
        values ($1, $2, $3, $4, $5, $6)`
      const row = { id, name, token, xid, createdAt: now, changedAt: decision.changedAt }
      await connection.query({ text }, [id, name, token, xid, now, decision.changedAt])
      return { outcome: 'created', row }
    }
    case 'update': {
      const text = `update redrive.${table} set name = $2, token = $3, changed_at = $4 where id = $1`
      await connection.query({ text }, [id, name, token, decision.changedAt])
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

export async function getEntity(
  connections: Connections,
  table: EntityTable,
  id: string,
): Promise<Producer | null> {
  const text = `select * from redrive.${table} where id = $1`
  const [row] = await connections.read({ name: `get-${table}`, text }, [id])
  return row === undefined ? null : toProducer(row)
}

/** The number of a channel; undefined: there is none. */
export async function findChannelNumber(connection: Connection, id: string): Promise<number | undefined> {
  const text = 'select number from redrive.webhook_channels where id = $1'
  const [row] = await connection.query({ text }, [id])
  return row && readNumber(row, 'number')
}

export async function listEntities(
  connections: Connections,
  table: EntityTable,
  page: PageQuery,
): Promise<Producer[]> {
  const rows = await readPage(connections, `select t.* from redrive.${table} t where true`, [], page)
  return rows.map(toProducer)
}

/** `text`: selects from a table `t` with a condition, and needs the values. */
export async function readPage(
  connections: Connections,
  text: string,
  values: readonly unknown[],
  page: PageQuery,
): Promise<Row[]> {
  const bounds = boundPage(page, 't', (n) =>
    n === 0 ? `$${values.length + 1}::int8` : `$${values.length + 2}`,
  )
  const limit = `$${values.length + bounds.values.length + 1}`
  const rows = await connections.read(
    { text: `${text} ${bounds.condition} order by ${bounds.order} limit ${limit}` },
    [...values, ...bounds.values, page.countMax],
  )
  return bounds.isReversed ? rows.reverse() : rows
}
