/** `GET /api/v1/info`. */
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
    /** Durations are text, such as `1m0s`. */
    request_timeout: string
    keep_alive_timeout: string
  }>
}>

/** `GET /health`. */
export type Health = Readonly<{
  status: 'pass' | 'warn' | 'fail'
  version: string
  checks: Readonly<Record<string, readonly HealthCheck[]>>
}>

export type HealthCheck = Readonly<{
  componentType: string
  status: 'pass' | 'warn' | 'fail'
  time: string
  /** Why it fails. */
  output?: string
}>

/** The body of every error answer of `/api/v1`. */
export type ErrorBody = Readonly<{
  error: Readonly<{
    code: string
    message: string
    hint: string
    request_id: string
    details?: readonly Readonly<{ field: string; message: string }>[]
  }>
}>

export type WireRetry = Readonly<{
  kind: 'fixed' | 'list' | 'exponential'
  delays: readonly string[]
  jitter: number
}>

export type WirePolicy = Readonly<{
  lease_timeout: string
  expire_timeout: string
  attempts_max: number
  dead_queue: string | null
  on_dead: 'delete' | 'keep'
  retry: WireRetry
  done_retention: string
  letter_class: string
  redrive: Readonly<{ mode: 'manual' | 'auto'; redrives_max: number; backoff: WireRetry }>
  reference: string
}>

type WireRetryChange = Omit<WireRetry, 'jitter'> & Readonly<{ jitter?: number }>

/** The policy of `POST /api/v1/queues` and `PATCH /api/v1/queues/{name}`. */
export type WirePolicyChanges = Partial<Omit<WirePolicy, 'retry' | 'redrive'>> &
  Readonly<{
    retry?: WireRetryChange
    redrive?: Readonly<{ mode?: 'manual' | 'auto'; redrives_max?: number; backoff?: WireRetryChange }>
  }>

/** `GET /api/v1/queues/{name}`. */
export type WireQueue = Readonly<{
  name: string
  namespace: string
  partitions: number
  is_paused: boolean
  created_at: string
  updated_at: string
  policy: WirePolicy
  counts: Readonly<
    Record<'waiting' | 'scheduled' | 'leased' | 'done' | 'dead' | 'discarded' | 'archived', number> &
      Record<
        'accepted' | 'completed' | 'dead_lettered' | 'dropped' | 'deleted' | 'forgotten' | 'purged',
        number
      >
  >
}>

/** `POST /api/v1/queues/{name}/items`. */
export type WireProducedItems = Readonly<{ partition: number; ids: readonly string[]; is_repeat: boolean }>

/** `POST /api/v1/queues/{name}/leases/extend`. */
export type WireExtendedLeases = Readonly<{ lease_deadline: string }>

/** `POST /api/v1/queues/{name}/leases/cancel`. */
export type WireCancelledLease = Readonly<{ is_cancelled: boolean }>

/** `GET /api/v1/queues`. */
/** The answer to a creation. */
export type WireNewQueue = WireQueue & Readonly<{ warnings: readonly string[] }>
export type WireQueuesPage = Readonly<{ queues: readonly WireQueue[]; next_cursor: string | null }>
