/** The JSON of `/api/v1/alerts/rules`: see docs/alerts.md and the OpenAPI document. */
import type { AlertSeverity } from './alert-wire.ts'

/** Each type has its own fields. */
export type AlertCondition = {
  type:
    | 'letters'
    | 'oldest-letter'
    | 'inflow'
    | 'group'
    | 'finding'
    | 'consumer'
    | 'kafka-retention'
    | 'count-drift'
  count_min?: number
  age?: string
  window?: string
  kinds?: ('new' | 'regressed')[]
  active_for?: string
  queues?: string[]
  letter_classes?: string[]
  excluded_letter_classes?: string[]
  findings?: (
    | 'worker-missing'
    | 'worker-idle'
    | 'worker-stuck'
    | 'worker-draining'
    | 'worker-expected'
    | 'lag'
    | 'kafka-retention'
    | 'redis-down'
  )[]
  finding_severity?: 'WARNING' | 'CRITICAL' | null
  subjects?: string[]
  statuses?: ('held' | 'disabled')[]
}

export type AlertRule = Readonly<{
  name: string
  namespace: string
  /** A rule of the configuration of the server cannot be changed. */
  source: 'built-in' | 'api' | 'configuration'
  description: string
  is_enabled: boolean
  severity: AlertSeverity
  condition: AlertCondition
  hold: string
  clear_after: string
  group_wait: string
  /** null: it is not notified again. */
  repeat_interval: string | null
  /** null: all channels of the namespace. */
  channels: readonly string[] | null
}>

/** For a built-in rule, fields that are left out keep their built-in values. */
export type NewAlertRule = Readonly<Partial<Omit<AlertRule, 'name' | 'source'>>>
