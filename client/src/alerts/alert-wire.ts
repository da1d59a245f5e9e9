/** The JSON of `/api/v1/alerts` and `/api/v1/alerts/rules`: see docs/alerts.md and the OpenAPI document. */

export type AlertSeverity = 'critical' | 'warning' | 'info'
export type AlertState = 'pending' | 'firing' | 'resolved'

/** The decision of a person about an alert. */
export type AlertDecision = Readonly<{ at: string; actor: string; note: string }>

export type Alert = Readonly<{
  id: string
  rule: string
  namespace: string
  /** A queue, `group/<id>`, a worker `<type>/<instance>` and so on; `*`: all subjects beyond a limit. */
  subject: string
  severity: AlertSeverity
  state: AlertState
  /** The alert as a sentence. */
  summary: string
  queue: string | null
  group_id: number | null
  /** The title of the group. */
  group: string | null
  count: number | null
  sample_error: string | null
  started_at: string
  /** null: the hold time of the rule is not over. */
  fired_at: string | null
  ended_at: string | null
  notified_at: string | null
  acknowledged: AlertDecision | null
  muted: (AlertDecision & Readonly<{ until: string }>) | null
  /** null: its condition ended, or it did not end. */
  resolved: AlertDecision | null
}>

export type AlertsQuery = Readonly<{
  state?: readonly AlertState[]
  rule?: string
  severity?: AlertSeverity
  queue?: string
  namespace?: string
  /** RFC 3339 times. */
  started_from?: string
  started_until?: string
  limit?: number
  cursor?: string
}>
export type AlertsPage = Readonly<{ alerts: readonly Alert[]; next_cursor: string | null }>
