/** What the server says about itself: `GET /api/v1/info`. */
export type ServerInfo = Readonly<{
  name: 'redrive'
  version: string
  store: Readonly<{ kind: 'sqlite' | 'memory' | 'postgres'; is_up: boolean }>
  /** RFC 3339. */
  started_at: string
  uptime_seconds: number
  limits: Readonly<{
    body_bytes_max: number
    header_bytes_max: number
    headers_max: number
    url_bytes_max: number
    request_seconds_max: number
    keep_alive_seconds: number
  }>
}>

/** `GET /health`. */
export type Health = Readonly<{
  status: 'pass' | 'fail'
  version: string
  checks: Readonly<Record<string, readonly HealthCheck[]>>
}>

export type HealthCheck = Readonly<{
  componentType: string
  status: 'pass' | 'fail'
  time: string
  /** Why it fails. */
  output?: string
}>

/** The body of every answer of `/api/v1` that is not a success. */
export type ErrorBody = Readonly<{
  error: Readonly<{
    code: string
    message: string
    hint: string
    request_id: string
    details?: readonly Readonly<{ field: string; message: string }>[]
  }>
}>
