/**
 * Alerts, and the rules and channels that are created through the API.
 *
 * Both are documents with a version, like a campaign: ops/alerts and drivers/notify decide, a store keeps
 * them. The pass over the rules writes alerts, the notices that it has read, and the notifications in one
 * transaction, with the fence of its lock.
 */
import type { Instant } from '../../core/time/instant.ts'

export type AlertCommand = PutAlertConfig | DeleteAlertConfig | PutAlerts | RemoveAlerts | PruneAlerts

export type AlertResults = {
  'put-alert-config': undefined
  'delete-alert-config': undefined
  'put-alerts': undefined
  'remove-alerts': undefined
  'prune-alerts': { removed: number }
}

export interface AlertStore {
  /** In byte order of their names. The number of configs is bounded by `put-alert-config`. */
  listAlertConfigs(query: AlertConfigsQuery): Promise<readonly StoredAlertConfig[]>
  getAlertConfig(kind: AlertConfigKind, name: string): Promise<StoredAlertConfig | null>
  getAlert(id: string): Promise<StoredAlert | null>
  /** Newest first, by id. */
  listAlerts(query: AlertsQuery): Promise<readonly StoredAlert[]>
  /** Tracked alerts by rule, state and severity, without those that a person resolved. */
  countAlerts(): Promise<readonly AlertCount[]>
}

export const alertConfigKinds = ['rule', 'channel'] as const
export type AlertConfigKind = (typeof alertConfigKinds)[number]

/** A rule or a channel. A name is unique among the configs of its kind, over all namespaces. */
export type StoredAlertConfig = Readonly<{
  kind: AlertConfigKind
  name: string
  namespace: string
  /** Grows by 1 with each `put-alert-config`. */
  version: number
  document: Readonly<Record<string, unknown>>
  /** Must not be shown: a signing secret, a token, an address with a token in it. */
  secret: string | null
}>

export type AlertConfigsQuery = Readonly<{ kind: AlertConfigKind; namespaces?: readonly string[] }>

/**
 * Stores the config if its stored version is `version` (0: it does not exist yet), and adds 1 to the version.
 * Rejects with ALERT_CONFIG_CHANGED if it has another one, and with ALERT_CONFIGS_FULL if there are
 * `countMax` configs of this kind already. The namespace never changes: the store keeps the first one.
 */
export type PutAlertConfig = Readonly<{
  op: 'put-alert-config'
  kind: AlertConfigKind
  name: string
  namespace: string
  version: number
  document: Readonly<Record<string, unknown>>
  /** Undefined: the stored secret stays. */
  secret?: string | null
  countMax: number
}>

/** Rejects with ALERT_CONFIG_CHANGED if the stored version is another one. */
export type DeleteAlertConfig = Readonly<{
  op: 'delete-alert-config'
  kind: AlertConfigKind
  name: string
  version: number
}>

export const alertStates = ['pending', 'firing', 'resolved'] as const
export type AlertState = (typeof alertStates)[number]

/** The title and the error are from letters, so readers without content see them redacted. */
export type AlertDocument = Readonly<
  Record<string, unknown> & { groupTitle?: string | null; sampleError?: string | null }
>

/** ops/alerts/stored-alert.ts encodes and decodes alerts. */
export type StoredAlert = Readonly<{
  /** Grows with time. */
  id: string
  /** Grows by 1 with each `put-alerts`. */
  version: number
  namespace: string
  rule: string
  /** The queue or worker that it concerns, unique among the tracked alerts of a rule in a namespace. */
  subject: string
  queue: string | null
  severity: string
  state: AlertState
  /** The pass still compares the alert with its rule. */
  isTracked: boolean
  startedAt: Instant
  endedAt: Instant | null
  document: AlertDocument
}>

/**
 * Stores each alert if its stored version is `version` (0: it does not exist yet), and adds 1 to the version.
 * Rejects the whole write with ALERT_CHANGED if one has another version, or if another alert about its
 * subject is tracked.
 */
export type PutAlerts = Readonly<{ op: 'put-alerts'; alerts: readonly StoredAlert[] }>

/** Removes alerts, for example those that never fired. Rejects with ALERT_CHANGED like `put-alerts`. */
export type RemoveAlerts = Readonly<{
  op: 'remove-alerts'
  alerts: readonly Pick<StoredAlert, 'id' | 'version'>[]
}>

/**
 * Removes alerts that are not tracked and ended before `before`, and the oldest ones that are not tracked
 * beyond the `keptMax` newest alerts. At most `countMax` of each.
 */
export type PruneAlerts = Readonly<{
  op: 'prune-alerts'
  before: Instant
  keptMax: number
  countMax: number
}>

export type AlertsQuery = Readonly<{
  namespaces?: readonly string[]
  states?: readonly AlertState[]
  isTracked?: boolean
  rule?: string
  severity?: string
  queue?: string
  startedFrom?: Instant
  startedUntil?: Instant
  /** Only smaller ids. */
  beforeId?: string
  countMax: number
}>

export type AlertCount = Readonly<{ rule: string; state: AlertState; severity: string; count: number }>
