import { isStorableText } from '../../../core/text/storable-text.ts'
import { KnownError } from '../../../errors.ts'
import type {
  ConsumerFigures,
  FiguresQuery,
  PruneDeliveries,
  PutDelivery,
  RecordDeliveryFigures,
  StoredDelivery,
} from '../../contract/deliveries.ts'
import { sumFigures, toStoredDelivery } from '../../shared/rows/delivery-rows.ts'
import { readText } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

const insertDelivery: Statement = {
  name: 'insert-delivery',
  text: `insert into redrive.webhook_deliveries (consumer, version, changed_at, document, secrets)
    values ($1, 1, $2, $3, $4) on conflict (consumer) do nothing returning 1`,
}
const updateDelivery: Statement = {
  name: 'update-delivery',
  text: `update redrive.webhook_deliveries set version = version + 1, changed_at = $2, document = $3,
      secrets = coalesce($4, secrets) where consumer = $1 and version = $5 returning 1`,
}

export async function putDelivery(
  { connection }: Transaction,
  command: PutDelivery,
): Promise<{ isPut: boolean }> {
  const { consumer, version, now } = command
  const secrets = command.secrets === undefined ? null : JSON.stringify(command.secrets)
  const values = [consumer, now, JSON.stringify(command.document), secrets]
  const rows =
    version === 0
      ? await connection.query(insertDelivery, values)
      : await connection.query(updateDelivery, [...values, version])
  if (rows.length === 0 && command.isRequired === true) {
    throw new KnownError(
      'CONSUMER_CHANGED',
      `the delivery of consumer number ${consumer} is no longer at version ${version}`,
    )
  }
  if (rows.length === 1 && command.entry !== undefined) await insertAudit(connection, [command.entry])
  return { isPut: rows.length === 1 }
}

const selectDeliveries = `select t.*, c.id as channel_id, d.version as delivery_version, d.document, d.secrets
  from redrive.webhook_consumers t join redrive.webhook_channels c on c.number = t.channel
  left join redrive.webhook_deliveries d on d.consumer = t.number`
const allDeliveries: Statement = {
  name: 'all-deliveries',
  text: `${selectDeliveries} where t.type = 'push' order by t.number`,
}
const changedDeliveries: Statement = {
  name: 'changed-deliveries',
  text: `${selectDeliveries} where t.changed_at >= $1 or d.changed_at >= $1 order by t.number`,
}
const oneDelivery: Statement = {
  name: 'get-delivery',
  text: `${selectDeliveries} where c.id = $1 and t.id = $2`,
}

export async function listDeliveries(
  connections: Connections,
  changedSince: number | undefined,
): Promise<StoredDelivery[]> {
  const rows =
    changedSince === undefined
      ? await connections.read(allDeliveries)
      : await connections.read(changedDeliveries, [changedSince])
  return rows.map(toStoredDelivery)
}

export async function getDelivery(
  connections: Connections,
  channelId: string,
  consumerId: string,
): Promise<StoredDelivery | null> {
  if (!isStorableText(channelId) || !isStorableText(consumerId)) return null
  const [row] = await connections.read(oneDelivery, [channelId, consumerId])
  return row === undefined ? null : toStoredDelivery(row)
}

const upsertFigures: Statement = {
  name: 'upsert-delivery-figures',
  text: `insert into redrive.webhook_minutes (consumer, minute, writer, delivered, failed, latencies)
    select f.consumer, f.minute, $1, f.delivered, f.failed, f.latencies
    from unnest($2::int4[], $3::int8[], $4::int8[], $5::int8[], $6::text[])
      as f(consumer, minute, delivered, failed, latencies)
    on conflict (consumer, minute, writer) do update set delivered = excluded.delivered,
      failed = excluded.failed, latencies = excluded.latencies`,
}

export async function recordDeliveryFigures(
  { connection }: Transaction,
  { writer, figures }: RecordDeliveryFigures,
): Promise<undefined> {
  if (figures.length === 0) return
  await connection.query(upsertFigures, [
    writer,
    encodeInt4s(figures.map(({ consumer }) => consumer)),
    encodeInt8s(figures.map(({ minute }) => minute)),
    encodeInt8s(figures.map(({ delivered }) => delivered)),
    encodeInt8s(figures.map(({ failed }) => failed)),
    encodeTexts(figures.map(({ latencies }) => JSON.stringify(latencies))),
  ])
}

export async function listDeliveryWriters(connections: Connections, since: number): Promise<string[]> {
  const text = 'select distinct writer from redrive.webhook_minutes where minute >= $1 order by writer'
  const rows = await connections.read({ name: 'delivery-writers', text }, [since])
  return rows.map((row) => readText(row, 'writer'))
}

export async function sumDeliveryFigures(
  connections: Connections,
  { since, consumer }: FiguresQuery,
): Promise<ConsumerFigures[]> {
  const rows =
    consumer === undefined
      ? await connections.read(
          {
            name: 'all-delivery-figures',
            text: 'select * from redrive.webhook_minutes where minute >= $1 order by consumer',
          },
          [since],
        )
      : await connections.read(
          {
            name: 'delivery-figures',
            text: 'select * from redrive.webhook_minutes where consumer = $1 and minute >= $2',
          },
          [consumer, since],
        )
  return sumFigures(rows)
}

/** The numbers of attempts are in the order of time, so the oldest are the first. */
const deleteAttempts: Statement = {
  name: 'prune-attempts',
  text: `delete from redrive.webhook_attempts where number in (
      select o.number from (select a.number, a.started_at from redrive.webhook_attempts a order by a.number limit $2) o
      where o.started_at < $1) returning 1`,
}

export async function pruneDeliveries(
  { connection }: Transaction,
  { before, countMax }: PruneDeliveries,
): Promise<{ removed: number }> {
  const removed = await connection.query(deleteAttempts, [before, countMax])
  await connection.query({ text: 'delete from redrive.webhook_minutes where minute < $1' }, [before])
  await connection.query({
    text: `delete from redrive.webhook_deliveries d where not exists (
      select from redrive.webhook_consumers c where c.number = d.consumer)`,
  })
  return { removed: removed.length }
}
