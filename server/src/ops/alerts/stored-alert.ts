/** Encodes alerts for the store, and decodes them. */
import type { Alert } from '../../core/alerts/alert.ts'
import { type AlertSeverity, alertSeverities } from '../../core/alerts/notification.ts'
import type { StoredAlert } from '../../storage/contract/alerts.ts'

type Columns = Pick<Alert, keyof Alert & keyof StoredAlert>
/** The fields of an alert that are not columns. */
type AlertDocument = Omit<Alert, keyof Columns>

export function toStoredAlert(alert: Alert): StoredAlert {
  const {
    id,
    version,
    namespace,
    rule,
    subject,
    queue,
    severity,
    state,
    isTracked,
    startedAt,
    endedAt,
    ...rest
  } = alert
  const document: AlertDocument = rest
  return {
    id,
    version,
    namespace,
    rule,
    subject,
    queue,
    severity,
    state,
    isTracked,
    startedAt,
    endedAt,
    document,
  }
}

/** Alerts are written by `toStoredAlert` only. */
export function toAlert({ document, severity, ...columns }: StoredAlert): Alert {
  const fields = document as unknown as AlertDocument
  return { ...fields, ...columns, severity: toSeverity(severity) }
}

function toSeverity(text: string): AlertSeverity {
  return alertSeverities.find((each) => each === text) ?? 'warning'
}
