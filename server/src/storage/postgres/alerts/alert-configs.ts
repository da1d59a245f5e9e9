import { isStorableText } from '../../../core/text/storable-text.ts'
import type {
  AlertConfigKind,
  AlertConfigsQuery,
  DeleteAlertConfig,
  PutAlertConfig,
  StoredAlertConfig,
} from '../../contract/alerts.ts'
import { alertConfigChanged, alertConfigsFull } from '../../shared/alert-refusals.ts'
import { toStoredAlertConfig } from '../../shared/rows/alert-rows.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

const countConfigs: Statement = {
  name: 'count-alert-configs',
  text: 'select count(*)::int8 as count from redrive.alert_configs where kind = $1',
}
const insertConfig: Statement = {
  name: 'insert-alert-config',
  text: `insert into redrive.alert_configs (kind, name, version, document, secret, namespace)
    values ($1, $2, 1, $3, $4, $5) on conflict (kind, name) do nothing returning 1`,
}
const updateConfig: Statement = {
  name: 'update-alert-config',
  text: `update redrive.alert_configs set version = version + 1, document = $3,
      secret = case when $5::int8 = 1 then $4 else secret end
    where kind = $1 and name = $2 and version = $6 returning 1`,
}

export async function putAlertConfig(
  { connection }: Transaction,
  command: PutAlertConfig,
): Promise<undefined> {
  const { kind, name, namespace, version, secret } = command
  const values = [kind, name, JSON.stringify(command.document), secret ?? null]
  if (version === 0) {
    const [row] = await connection.query(countConfigs, [kind])
    if (readNumber(row ?? {}, 'count') >= command.countMax) throw alertConfigsFull(command)
    const inserted = await connection.query(insertConfig, [...values, namespace])
    if (inserted.length === 0) throw alertConfigChanged(command)
    return
  }
  const updated = await connection.query(updateConfig, [...values, secret === undefined ? 0 : 1, version])
  if (updated.length === 0) throw alertConfigChanged(command)
}

const deleteConfig: Statement = {
  name: 'delete-alert-config',
  text: 'delete from redrive.alert_configs where kind = $1 and name = $2 and version = $3 returning 1',
}

export async function deleteAlertConfig(
  { connection }: Transaction,
  command: DeleteAlertConfig,
): Promise<undefined> {
  const rows = await connection.query(deleteConfig, [command.kind, command.name, command.version])
  if (rows.length === 0) throw alertConfigChanged(command)
}

const readConfigs: Statement = {
  name: 'list-alert-configs',
  text: `select * from redrive.alert_configs
    where kind = $1 and ($2::text[] is null or namespace = any ($2)) order by name`,
}
const readConfig: Statement = {
  name: 'get-alert-config',
  text: 'select * from redrive.alert_configs where kind = $1 and name = $2',
}

export async function listAlertConfigs(
  connections: Connections,
  { kind, namespaces }: AlertConfigsQuery,
): Promise<StoredAlertConfig[]> {
  const within = namespaces === undefined ? null : encodeTexts(namespaces.filter(isStorableText))
  return (await connections.read(readConfigs, [kind, within])).map(toStoredAlertConfig)
}

export async function getAlertConfig(
  connections: Connections,
  kind: AlertConfigKind,
  name: string,
): Promise<StoredAlertConfig | null> {
  if (!isStorableText(name)) return null
  const [row] = await connections.read(readConfig, [kind, name])
  return row === undefined ? null : toStoredAlertConfig(row)
}
