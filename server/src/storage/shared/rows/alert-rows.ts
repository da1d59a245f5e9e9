/** The rows of `alert_configs` and `alerts`, which have the same columns in both stores. */
import type {
  AlertConfigKind,
  AlertCount,
  AlertState,
  StoredAlert,
  StoredAlertConfig,
} from '../../contract/alerts.ts'
import {
  type DatabaseRow,
  readJson,
  readNumber,
  readNumberOrNull,
  readText,
  readTextOrNull,
} from './row-values.ts'

export function toStoredAlertConfig(row: DatabaseRow): StoredAlertConfig {
  return {
    kind: readText(row, 'kind') as AlertConfigKind,
    name: readText(row, 'name'),
    namespace: readText(row, 'namespace'),
    version: readNumber(row, 'version'),
    document: readJson<StoredAlertConfig['document']>(row, 'document'),
    secret: readTextOrNull(row, 'secret'),
  }
}

export function toStoredAlert(row: DatabaseRow): StoredAlert {
  return {
    id: readText(row, 'id'),
    version: readNumber(row, 'version'),
    namespace: readText(row, 'namespace'),
    rule: readText(row, 'rule'),
    subject: readText(row, 'subject'),
    queue: readTextOrNull(row, 'queue'),
    severity: readText(row, 'severity'),
    state: readText(row, 'state') as AlertState,
    isTracked: readNumber(row, 'is_tracked') === 1,
    startedAt: readNumber(row, 'started_at'),
    endedAt: readNumberOrNull(row, 'ended_at'),
    document: readJson<StoredAlert['document']>(row, 'document'),
  }
}

export function toAlertCount(row: DatabaseRow): AlertCount {
  return {
    rule: readText(row, 'rule'),
    state: readText(row, 'state') as AlertState,
    severity: readText(row, 'severity'),
    count: readNumber(row, 'count'),
  }
}
