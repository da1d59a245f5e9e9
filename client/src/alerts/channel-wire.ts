/** The JSON of `/api/v1/alerts/channels`: see docs/alerts.md and the OpenAPI document. */

export type AlertChannelKind =
  | 'webhook'
  | 'slack'
  | 'teams'
  | 'discord'
  | 'pagerduty'
  | 'opsgenie'
  | 'telegram'
  | 'email'

/** The fields of all kinds; each kind has its own. Answers have no secret fields. */
export type AlertChannelSettings = {
  url?: string
  secret?: string
  routing_key?: string
  api_key?: string
  api_key_header?: string
  bot_token?: string
  chat_id?: string
  host?: string
  port?: number
  tls?: string
  tls_ca?: string
  user?: string
  password?: string
  from?: string
  to?: string[]
}

export type AlertChannel = Readonly<{
  name: string
  namespace: string
  kind: AlertChannelKind
  /** A channel of the configuration of the server cannot be changed. */
  source: 'configuration' | 'api'
  settings: AlertChannelSettings
  /** The names of the secret fields that have a value. */
  secrets_set: readonly string[]
}>

export type NewAlertChannel = Readonly<{
  kind: AlertChannelKind
  settings: AlertChannelSettings
  /** Default `_system`. It never changes. */
  namespace?: string
}>

export type AlertChannelTest = Readonly<{
  is_delivered: boolean
  latency_ms: number
  /** The HTTP status or SMTP reply code; null: no answer arrived. */
  status: number | null
  error: Readonly<{ code: string; message: string; response: string | null }> | null
}>
