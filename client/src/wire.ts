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

/** How long an item waits before its next attempt. Durations are text such as `1m0s`. */
export type RetryView = Readonly<{
  kind: 'fixed' | 'list' | 'exponential'
  /** fixed: the one delay; list: one per attempt; exponential: the first and the longest. */
  delays: readonly string[]
  /** 0.2 randomises each delay by up to 20 % in both directions. */
  jitter: number
}>

/** `GET /api/v1/queues/{name}`: a queue with its policy and exact counts. */
export type QueueView = Readonly<{
  name: string
  namespace: string
  partitions: number
  is_paused: boolean
  created_at: string
  updated_at: string
  policy: Readonly<{
    lease: string
    expire: string
    attempts_max: number
    dead_queue: string | null
    on_dead: 'delete' | 'keep'
    retry: RetryView
    keep_done: string
    letter_class: string
    redrive: Readonly<{ mode: 'manual' | 'auto'; redrives_max: number; backoff: RetryView }>
    reference: string
  }>
  counts: Readonly<
    Record<'waiting' | 'scheduled' | 'leased' | 'done' | 'dead' | 'discarded' | 'archived', number> &
      Record<
        'accepted' | 'completed' | 'dead_lettered' | 'dropped' | 'deleted' | 'forgotten' | 'purged',
        number
      >
  >
}>

/** The settings of a queue's policy that change; omitted settings stay. */
export type PolicyChange = Readonly<{
  lease?: string
  expire?: string
  /**
   * 0: no limit. An item becomes dead if its lease ends and its attempts have reached the limit, or if it is
   * retried and its attempts exceed the limit.
   */
  attempts_max?: number
  dead_queue?: string | null
  /** For a queue without a dead queue: delete items that die, or keep them in the queue as dead. */
  on_dead?: 'delete' | 'keep'
  retry?: Omit<RetryView, 'jitter'> & Readonly<{ jitter?: number }>
  /** How long completed items are kept. */
  keep_done?: string
  /** For a dead queue: how alerts and retention treat its letters. */
  letter_class?: string
  /** For a dead queue: whether its letters are redriven automatically. Omitted fields stay. */
  redrive?: Readonly<{
    mode?: 'manual' | 'auto'
    redrives_max?: number
    backoff?: Omit<RetryView, 'jitter'> & Readonly<{ jitter?: number }>
  }>
  reference?: string
}>

/** `POST /api/v1/queues/{name}/items`. */
export type WireProducedItems = Readonly<{ partition: number; ids: readonly string[]; is_repeat: boolean }>

/** `POST /api/v1/queues/{name}/leases/extend`. */
export type WireExtendedLeases = Readonly<{ lease_deadline: string }>

/** `POST /api/v1/queues/{name}/leases/cancel`. */
export type WireCancelledLease = Readonly<{ is_cancelled: boolean }>

/** `GET /api/v1/queues`. */
export type QueuesPage = Readonly<{
  queues: readonly QueueView[]
  /** Pass it as `after` to get the next page; null on the last page. */
  next: string | null
}>
