/** The checksum of the producers, channels and consumers that were configured last. */
import type { RecordConfiguration } from '../../contract/webhooks.ts'
import { readText } from '../../shared/rows/row-values.ts'
import type { Connections } from '../connection/connections.ts'
import type { Transaction } from '../transaction.ts'

export async function readConfigurationChecksum(connections: Connections): Promise<string | null> {
  const text = 'select checksum from redrive.webhook_configuration'
  const [row] = await connections.read({ name: 'configuration-checksum', text })
  return row === undefined ? null : readText(row, 'checksum')
}

export async function recordConfiguration(
  { connection }: Transaction,
  { checksum, now }: RecordConfiguration,
): Promise<undefined> {
  const text = `insert into redrive.webhook_configuration (id, checksum, changed_at) values (1, $1, $2)
    on conflict (id) do update set checksum = excluded.checksum, changed_at = excluded.changed_at`
  await connection.query({ text }, [checksum, now])
}
