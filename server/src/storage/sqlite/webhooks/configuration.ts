/** The checksum of the producers, channels and consumers that were configured last. */
import type { RecordConfiguration } from '../../contract/webhooks.ts'
import { readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

export function readConfigurationChecksum(database: Database): string | null {
  const row = database.get('select checksum from webhook_configuration')
  return row === undefined ? null : readText(row, 'checksum')
}

export function recordConfiguration(
  { database }: Transaction,
  { checksum, now }: RecordConfiguration,
): undefined {
  const sql = `insert into webhook_configuration (id, checksum, changed_at) values (1, ?, ?)
    on conflict (id) do update set checksum = excluded.checksum, changed_at = excluded.changed_at`
  database.run(sql, checksum, now)
}
