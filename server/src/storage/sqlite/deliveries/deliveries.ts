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
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

export function putDelivery({ database }: Transaction, command: PutDelivery): { isPut: boolean } {
  const { consumer, version, now } = command
  const document = JSON.stringify(command.document)
  const secrets = command.secrets === undefined ? null : JSON.stringify(command.secrets)
  const put =
    version === 0
      ? database.run(
          `insert into webhook_deliveries (consumer, version, changed_at, document, secrets)
           values (?, 1, ?, ?, ?) on conflict do nothing`,
          consumer,
          now,
          document,
          secrets,
        )
      : database.run(
          `update webhook_deliveries set version = version + 1, changed_at = ?, document = ?,
             secrets = coalesce(?, secrets) where consumer = ? and version = ?`,
          now,
          document,
          secrets,
          consumer,
          version,
        )
  if (put === 0 && command.isRequired === true) {
    throw new KnownError(
      'CONSUMER_CHANGED',
      `the delivery of consumer number ${consumer} is no longer at version ${version}`,
    )
  }
  if (put === 1 && command.entry !== undefined) insertAudit(database, [command.entry])
  return { isPut: put === 1 }
}

const selectDeliveries = `select t.*, c.id as channel_id, d.version as delivery_version, d.document, d.secrets
  from webhook_consumers t join webhook_channels c on c.number = t.channel
  left join webhook_deliveries d on d.consumer = t.number`

export function listDeliveries(database: Database, changedSince: number | undefined): StoredDelivery[] {
  const rows =
    changedSince === undefined
      ? database.all(`${selectDeliveries} where t.type = 'push' order by t.number`)
      : database.all(
          `${selectDeliveries} where t.changed_at >= ? or d.changed_at >= ? order by t.number`,
          changedSince,
          changedSince,
        )
  return rows.map(toStoredDelivery)
}

export function getDelivery(
  database: Database,
  channelId: string,
  consumerId: string,
): StoredDelivery | null {
  const row = database.get(`${selectDeliveries} where c.id = ? and t.id = ?`, channelId, consumerId)
  return row === undefined ? null : toStoredDelivery(row)
}

export function recordDeliveryFigures({ database }: Transaction, command: RecordDeliveryFigures): undefined {
  for (const { consumer, minute, delivered, failed, latencies } of command.figures) {
    database.run(
      `insert into webhook_minutes (consumer, minute, writer, delivered, failed, latencies)
       values (?, ?, ?, ?, ?, ?) on conflict do update set delivered = excluded.delivered,
         failed = excluded.failed, latencies = excluded.latencies`,
      consumer,
      minute,
      command.writer,
      delivered,
      failed,
      JSON.stringify(latencies),
    )
  }
}

export function listDeliveryWriters(database: Database, since: number): string[] {
  const sql = 'select distinct writer from webhook_minutes where minute >= ? order by writer'
  return database.all(sql, since).map((row) => readText(row, 'writer'))
}

export function sumDeliveryFigures(database: Database, { since, consumer }: FiguresQuery): ConsumerFigures[] {
  const rows =
    consumer === undefined
      ? database.all('select * from webhook_minutes where minute >= ? order by consumer', since)
      : database.all('select * from webhook_minutes where consumer = ? and minute >= ?', consumer, since)
  return sumFigures(rows)
}

/** The numbers of attempts are in the order of time, so the oldest are the first. */
export function pruneDeliveries(
  { database }: Transaction,
  { before, countMax }: PruneDeliveries,
): { removed: number } {
  const rows = database.all(
    'select number, started_at from webhook_attempts order by number limit +?',
    countMax,
  )
  const old = rows.filter((row) => readNumber(row, 'started_at') < before)
  const last = old.at(-1)
  if (last !== undefined) {
    database.run(
      'delete from webhook_attempts where number <= ? and started_at < ?',
      readNumber(last, 'number'),
      before,
    )
  }
  database.run('delete from webhook_minutes where minute < ?', before)
  database.run(
    'delete from webhook_deliveries where not exists (select 1 from webhook_consumers c where c.number = consumer)',
  )
  return { removed: old.length }
}
