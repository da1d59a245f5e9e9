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
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

export function putAlertConfig({ database }: Transaction, command: PutAlertConfig): undefined {
  const { kind, name, namespace, version, secret } = command
  const document = JSON.stringify(command.document)
  if (version === 0) {
    const row = database.get('select count(*) as count from alert_configs where kind = ?', kind)
    if (row !== undefined && readNumber(row, 'count') >= command.countMax) throw alertConfigsFull(command)
    const put = database.run(
      `insert into alert_configs (kind, name, namespace, version, document, secret)
       values (?, ?, ?, 1, ?, ?) on conflict do nothing`,
      kind,
      name,
      namespace,
      document,
      secret ?? null,
    )
    if (put === 0) throw alertConfigChanged(command)
    return
  }
  const put = database.run(
    `update alert_configs set version = version + 1, document = ?, secret = case when ? then ? else secret end
     where kind = ? and name = ? and version = ?`,
    document,
    secret === undefined ? 0 : 1,
    secret ?? null,
    kind,
    name,
    version,
  )
  if (put === 0) throw alertConfigChanged(command)
}

export function deleteAlertConfig({ database }: Transaction, command: DeleteAlertConfig): undefined {
  const sql = 'delete from alert_configs where kind = ? and name = ? and version = ?'
  if (database.run(sql, command.kind, command.name, command.version) === 0) throw alertConfigChanged(command)
}

export function listAlertConfigs(
  database: Database,
  { kind, namespaces }: AlertConfigsQuery,
): StoredAlertConfig[] {
  return database
    .all(
      `select * from alert_configs where kind = ?1
         and (?2 is null or namespace in (select value from json_each(?2))) order by name`,
      kind,
      namespaces === undefined ? null : JSON.stringify(namespaces),
    )
    .map(toStoredAlertConfig)
}

export function getAlertConfig(
  database: Database,
  kind: AlertConfigKind,
  name: string,
): StoredAlertConfig | null {
  const row = database.get('select * from alert_configs where kind = ? and name = ?', kind, name)
  return row === undefined ? null : toStoredAlertConfig(row)
}
