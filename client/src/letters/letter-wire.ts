/**
 * The JSON of `/api/v1` for dead letters, groups, campaigns and the audit log: see docs/letters-api.md and
 * `/docs`. `server/test/wire-types.ts` asserts at compile time that these types equal the server's schemas.
 */

export type LetterStatus = 'PENDING' | 'RETRYING' | 'RESOLVED' | 'DEAD' | 'DISCARDED'
type OriginKind = 'queue' | 'webhook' | 'kafka' | 'http'
type OneOrMore<T> = T | readonly T[]

/** Conditions for counts, which are exact. A letter must match every given field, and one value of a list. */
export type CountedFilter = Readonly<{
  queue?: OneOrMore<string>
  namespace?: OneOrMore<string>
  letter_class?: OneOrMore<string>
  status?: OneOrMore<LetterStatus>
  error_code?: OneOrMore<string>
  slug?: OneOrMore<string>
  error_class?: OneOrMore<string>
  group_id?: OneOrMore<number>
  cause_id?: OneOrMore<string>
  origin?: OneOrMore<string>
  retry_count_min?: number
  retry_count_max?: number
}>

/** Selects letters. Times are RFC 3339; ranges include both ends. */
export type LetterFilter = CountedFilter &
  Readonly<{
    dead_lettered_from?: string
    dead_lettered_until?: string
    updated_from?: string
    updated_until?: string
    last_failed_from?: string
    last_failed_until?: string
    /**
     * Any id that the letter has or had: its id or UUID, the id that produce answered, an id before a retry,
     * its source id, or the id of a redrive.
     */
    id?: OneOrMore<string>
    source_id?: OneOrMore<string>
    reference?: OneOrMore<string>
    /** The trace id of the header `traceparent`: 32 hexadecimal digits. */
    trace_id?: OneOrMore<string>
    /** A part of the payload in any case, within its first 1 MiB. */
    payload_contains?: string
    key_text?: string
    key_base64?: string
    /** Part of the error message; upper and lower case match. */
    message?: string
    /** `name`, or `name=value`. */
    header?: string
    /** `$.order.lines[0]["unit price"]=12` */
    json?: string
  }>

export type LetterOrder = Readonly<{ order_by?: 'dead_lettered_at' | 'updated_at'; order?: 'asc' | 'desc' }>
export type Page = Readonly<{
  /** `next_cursor` of the previous page. */
  cursor?: string
  limit?: number
}>

export type LetterOrigin = Readonly<{
  kind: OriginKind
  name: string
  partition: number | null
  id: string
  consumer_group: string | null
  cluster: string | null
  created_at: string
}>

export type LetterFailure = Readonly<{
  error_code: string
  slug: string
  error_class: string
  message: string
  attempts: number
  first_failed_at: string
  last_failed_at: string
  worker: string
  /** The name that the worker gave to the cause. */
  fingerprint: string | null
}>

type LetterFields = Readonly<{
  id: string
  queue: string
  status: LetterStatus
  source_id: string | null
  origin: LetterOrigin | null
  group_id: number | null
  /** Number of redrives after which the letter died again. */
  retry_count: number
  /** Number of redrives, regardless of their outcome. */
  requeue_count: number
  dead_lettered_at: string | null
  updated_at: string
  ended_at: string | null
  last_redrive_at: string | null
  next_redrive_at: string | null
  discard_reason: string
  /** `kind`, `encoding` and `reference` of the item; empty if it had none. */
  kind: string
  encoding: string
  reference: string
  /** The trace that the message belongs to. */
  trace_id: string | null
  key: LetterKey
}>

/** A letter in a list. */
export type LetterSummary = LetterFields &
  Readonly<{
    failure: LetterFailure | null
    /** The beginning of the payload. */
    payload: LetterPayload
  }>

export type LettersPage = Readonly<{
  letters: readonly LetterSummary[]
  next_cursor: string | null
  examined_count: number
  /** False: the search ran out of time before the page was full. Continue with `next_cursor`. */
  is_complete: boolean
  /** Null if the filter cannot be answered by the counts. */
  total: number | null
}>

/** One of `text` and `base64`, or neither if the header has no value. */
export type LetterHeader = Readonly<{ name: string; text?: string; base64?: string }>
/** One of `text` and `base64`; null if the message has no key. */
export type LetterKey = Readonly<{ text?: string; base64?: string }> | null
export type PayloadForm = 'text' | 'json' | 'base64' | 'none'
/**
 * One of `text`, `json` and `base64`: `text` if the payload is UTF-8, `base64` if it is not, `json` only if
 * it was requested. None of them if the form `none` was requested.
 */
export type LetterPayload = Readonly<{
  /** The length of the complete payload. */
  bytes: number
  /** Less than the complete payload is shown. */
  is_truncated: boolean
  text?: string
  json?: unknown
  base64?: string
}>

export type LetterRedrive = Readonly<{
  number: number
  at: string
  actor: string
  campaign: Readonly<{ id: string; name: string; position: number }> | null
  target: Readonly<{ kind: OriginKind; name: string; partition: number | null; id: string }>
  edit: number | null
  /** Null while the redrive is in progress. */
  outcome: 'resolved' | 'failed' | 'unknown' | 'cancelled' | null
  ended_at: string | null
}>

export type LetterEdit = Readonly<{
  number: number
  at: string
  actor: string
  payload: LetterPayload
  key: LetterKey
  headers: readonly LetterHeader[]
}>

export type AuditEntry = Readonly<{
  id: number
  at: string
  actor: string
  /** The visible part of the actor's API key; null: no key was used. */
  key_prefix: string | null
  /** The network address of the client; null: the change came from no request. */
  address: string | null
  namespace: string
  action: string
  target: string
  reason: string
  request_id: string
  /** `partial`: some of the named objects were refused. */
  outcome: 'done' | 'partial'
  details: Readonly<Record<string, unknown>>
}>
export type AuditQuery = Readonly<{
  target?: string
  action?: string
  actor?: string
  namespace?: string
  request_id?: string
  /** RFC 3339. Rows at this time or later. A list that is limited to times is ordered by time. */
  after?: string
  /** RFC 3339. Rows before this time. */
  before?: string
}>
export type AuditPage = Readonly<{
  entries: readonly AuditEntry[]
  next_cursor: string | null
  is_complete: boolean
}>

/** One letter with all its fields. */
export type LetterDetail = LetterFields &
  Readonly<{
    archived_at: string | null
    payload: LetterPayload
    headers: readonly LetterHeader[]
    /** Newest first: the current failure and up to 100 earlier ones. */
    failures: readonly (LetterFailure & Readonly<{ stack: string }>)[]
    /** The last 100 redrives, newest first. */
    redrives: readonly LetterRedrive[]
    edits: readonly LetterEdit[]
    audit: readonly AuditEntry[]
  }>

/** A line of an export. */
export type ExportedLetter = LetterFields &
  Readonly<{
    payload: LetterPayload
    headers: readonly LetterHeader[]
    failures: LetterDetail['failures']
    redrives: readonly LetterRedrive[]
    /** Continues the export after this letter. */
    cursor: string
  }>
export type ExportEnd = Readonly<{
  is_complete: boolean
  letters: number
  examined_count: number
  next_cursor: string | null
  error: Readonly<{ code: string; message: string }> | null
}>

/** A message that a worker could not process. Bytes are text, `{ base64 }`, or any JSON value. */
export type Envelope = Readonly<{
  /** Identifies the message at its source. Envelopes with the same id in one dead queue become one letter. */
  source_id?: string
  original_topic?: string
  original_queue?: string
  original_partition?: number
  original_offset?: number | string
  /** The id at the source, for messages without an offset. */
  original_id?: string
  /** When the source created the message. Like all times here: RFC 3339, or milliseconds since 1970. */
  original_timestamp?: string | number
  /** The cluster of its topic. */
  cluster?: string
  /** Text, `{base64}`, or any JSON value, which is stored as written. */
  original_key?: unknown
  original_value?: unknown
  original_key_encoding?: 'text' | 'json' | 'base64'
  original_value_encoding?: 'text' | 'json' | 'base64'
  headers?:
    | Readonly<Record<string, unknown>>
    | readonly (readonly [string, unknown])[]
    | readonly Readonly<{ name: string; value: unknown }>[]
  /** A string is used as the message. */
  error_details?:
    | string
    | Readonly<{
        exception_class?: string
        message?: string
        stack_trace?: string
        code?: string
        fingerprint?: string
      }>
  error_code?: string
  retry_count?: number
  worker_instance?: string
  consumer_group?: string
  first_failure_at?: string | number
  last_failure_at?: string | number
  /** When the message became a dead letter. Default: now. */
  dead_lettered_at?: string | number
  /**
   * Earlier failures in any order, each with the envelope's failure fields and `failed_at`. The newest 100
   * are kept.
   */
  history?: readonly unknown[]
}>
/** `problems` lists the parts of the envelope that could not be read, or not be stored as sent. */
export type CaptureResult = Readonly<{ id: string; is_new: boolean; problems: readonly string[] }>

export type RedriveResult = Readonly<{
  id: string
  is_started: boolean
  /**
   * Why the redrive did not start: missing, archived, redriving, leased, resolved, discarded, dead,
   * exhausted, no-target or dead-target.
   */
  refusal: string | null
  message: string | null
  number: number | null
  target: Readonly<{ queue: string; partition: number; id: string }> | null
}>
export type RedriveResults = Readonly<{ letters: readonly RedriveResult[]; started: number; refused: number }>

export type LetterChangeResult = Readonly<{
  id: string
  is_done: boolean
  refusal: string | null
  message: string | null
}>
export type DiscardResults = Readonly<{
  letters: readonly LetterChangeResult[]
  discarded: number
  refused: number
}>
/** With ids, `letters` has the result of each; otherwise the first letters that were not restored. */
export type RestoreResults = Readonly<{
  letters: readonly LetterChangeResult[]
  restored: number
  refused: number
  /** False: the call ran out of time. Repeat it. */
  is_complete: boolean
}>
export type CancelResults = Readonly<{
  letters: readonly LetterChangeResult[]
  cancelled: number
  refused: number
  is_complete: boolean
}>

export type ArchiveFilter = CountedFilter &
  Pick<
    LetterFilter,
    | 'id'
    | 'source_id'
    | 'reference'
    | 'trace_id'
    | 'payload_contains'
    | 'dead_lettered_from'
    | 'dead_lettered_until'
    | 'key_text'
    | 'key_base64'
    | 'message'
  > &
  Readonly<{ archived_from?: string; archived_until?: string }>

export type ArchivePage = Readonly<{
  letters: readonly (LetterSummary & Readonly<{ archived_at: string }>)[]
  next_cursor: string | null
  examined_count: number
  /** False: the search ran out of time before the page was full. Continue with `next_cursor`. */
  is_complete: boolean
}>

export type CountedBy =
  | 'queue'
  | 'letter_class'
  | 'status'
  | 'group_id'
  | 'origin'
  | 'error_code'
  | 'slug'
  | 'error_class'
  | 'retry_count'
export type LetterCounts = Readonly<{
  counts: readonly Readonly<
    { count: number } & Partial<Record<Exclude<CountedBy, 'group_id' | 'retry_count' | 'status'>, string>> & {
        status?: LetterStatus
        group_id?: number
        retry_count?: number
      }
  >[]
  total: number
  /** Present only as false: there are too many error classes to count each of them. */
  is_exact?: boolean
}>

/**
 * Exactly one of `ids`, `filter` with at least one condition, and `all` (every letter of every dead queue).
 */
export type CampaignSelection = Readonly<{
  action: 'redrive' | 'discard'
  ids?: readonly string[]
  filter?: LetterFilter
  all?: boolean
  /** The queue to send to, instead of each letter's origin. */
  target?: string
  include_dead?: boolean
  /** Takes only the first letters. */
  limit?: number
}>
/** `count_exactly`: count all letters, however long it takes. */
export type CampaignPreviewRequest = CampaignSelection & Readonly<{ count_exactly?: boolean }>
export type NewCampaign = CampaignSelection &
  CampaignPace &
  Readonly<{
    name: string
    reason: string
    /**
     * Sends this number of letters first. The others follow if these succeed. A discard campaign pauses after
     * this number of letters until it is resumed.
     */
    canary_count?: number
    /** Refused with SELECTION_CHANGED if the selection has another number of letters. */
    expected_count?: number
  }>
export type CampaignPace = Readonly<{
  rate_per_second?: number
  /** The rate grows to `rate_per_second` over this time, such as `5m`. */
  ramp?: string
  halt_ratio?: number
  halt_min?: number
}>
export type CampaignPreview = Readonly<{
  /** False: the search ran out of time; set `count_exactly` to count all letters. */
  is_exact: boolean
  count: number
  examined_count: number
  sample: readonly LetterSummary[]
  targets: readonly Readonly<{ queue: string; count: number }>[]
  statuses: Readonly<Record<LetterStatus, number>>
  warnings: readonly string[]
}>

export type CampaignLetterState =
  | 'pending'
  | 'sent'
  | 'resolved'
  | 'failed'
  | 'unknown'
  | 'skipped'
  | 'discarded'
type CampaignTexts =
  | 'queue'
  | 'namespace'
  | 'error_code'
  | 'slug'
  | 'error_class'
  | 'origin'
  | 'id'
  | 'source_id'
  | 'reference'
  | 'trace_id'
  | 'cause_id'
/**
 * The filter of a campaign as the server returns it: with lists, and with the queues instead of the class.
 */
export type CampaignFilter = Readonly<
  {
    status?: readonly LetterStatus[]
    group_id?: readonly number[]
  } & Partial<Record<CampaignTexts, readonly string[]>> &
    Omit<LetterFilter, keyof CountedFilter | CampaignTexts> &
    Pick<LetterFilter, 'retry_count_min' | 'retry_count_max'>
>
export type Campaign = Readonly<{
  id: string
  /** The namespace of its letters; null: they can be in several. */
  namespace: string | null
  name: string
  reason: string
  actor: string
  action: 'redrive' | 'discard'
  state: 'freezing' | 'canary' | 'running' | 'paused' | 'halted' | 'cancelled' | 'done'
  state_reason: string
  /** The campaign will not change any more. */
  is_ended: boolean
  /** The first of the given ids; `listCampaignLetters` returns all of them. Null if a filter was given. */
  ids: readonly string[] | null
  filter: CampaignFilter | null
  target: string | null
  include_dead: boolean
  canary_count: number
  rate_per_second: number
  ramp: string
  halt_ratio: number
  halt_min: number
  limit: number | null
  expected_count: number | null
  created_at: string
  updated_at: string
  started_at: string | null
  ended_at: string | null
  /** Null while the set is being frozen. */
  size: number | null
  counts: Readonly<Record<CampaignLetterState, number>>
  /** Letters per second that were sent during the last seconds. */
  current_rate_per_second: number
  /** Describes why the campaign waits for workers; empty if it does not. */
  waits_for: string
}>
/** A campaign with the causes of its letters that failed again or have an unknown outcome. */
export type CampaignReport = Campaign &
  Readonly<{
    /** The most frequent first, at most 20. */
    causes: readonly Readonly<{
      group_id: number
      title: string
      error_code: string
      error_class: string
      /** The error message of the letter `sample_id`. */
      message: string
      sample_id: string
      count: number
    }>[]
    /** Number of letters whose causes were counted: the first 1,000 of them. */
    causes_examined_count: number
  }>
export type CampaignsPage = Readonly<{ campaigns: readonly Campaign[]; next_cursor: string | null }>
export type CampaignLettersPage = Readonly<{
  letters: readonly Readonly<{
    position: number
    id: string
    state: CampaignLetterState
    refusal: string
    at: string | null
  }>[]
  next_cursor: string | null
}>
