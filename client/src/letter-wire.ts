/** Dead letters, groups, campaigns and the audit log as `/api/v1` writes them: see docs/letters-api.md and `/docs`. */

export type LetterStatus = 'PENDING' | 'RETRYING' | 'RESOLVED' | 'DEAD' | 'DISCARDED'
type OriginKind = 'queue' | 'webhook' | 'kafka' | 'http'
type OneOrMore<T> = T | readonly T[]

/** What the counts can tell. All that is given must hold; of several values any. */
export type CountedFilter = Readonly<{
  queue?: OneOrMore<string>
  class?: OneOrMore<string>
  status?: OneOrMore<LetterStatus>
  reason?: OneOrMore<string>
  slug?: OneOrMore<string>
  error_class?: OneOrMore<string>
  group?: OneOrMore<number>
  origin?: OneOrMore<string>
  retry_count_min?: number
  retry_count_max?: number
}>

/** Which letters are meant. Times are RFC 3339, both ends included. */
export type LetterFilter = CountedFilter &
  Readonly<{
    died_from?: string
    died_until?: string
    updated_from?: string
    updated_until?: string
    last_failed_from?: string
    last_failed_until?: string
    /** As text. */
    key?: string
    key_base64?: string
    /** In the error message, whatever the case. */
    text?: string
    /** `name`, or `name=value`. */
    header?: string
    /** `$.order.lines[0]["unit price"]=12` */
    json?: string
  }>

export type LetterOrder = Readonly<{ order_by?: 'died_at' | 'updated_at'; order?: 'asc' | 'desc' }>
export type Page = Readonly<{
  /** `next_cursor` of the page before. */
  cursor?: string
  limit?: number
}>

export type LetterOrigin = Readonly<{
  kind: OriginKind
  name: string
  partition: number | null
  id: string
  group: string | null
  cluster: string | null
  created_at: string
}>

export type LetterFailure = Readonly<{
  reason: string
  slug: string
  error_class: string
  message: string
  attempts: number
  first_failed_at: string
  last_failed_at: string
  worker: string
}>

type LetterFields = Readonly<{
  id: string
  queue: string
  status: LetterStatus
  source_id: string | null
  origin: LetterOrigin | null
  group_id: number | null
  /** How many redrives came back. */
  retry_count: number
  /** How often it was sent back, whatever became of it. */
  requeue_count: number
  created_at: string | null
  died_at: string | null
  updated_at: string
  ended_at: string | null
  last_redrive_at: string | null
  next_redrive_at: string | null
  discard_reason: string
  /** As the item had them; empty for none. */
  kind: string
  encoding: string
  reference: string
  key: string | null
  key_base64: string | null
}>

/** A letter in a list. */
export type LetterSummary = LetterFields &
  Readonly<{
    failure: LetterFailure | null
    payload: Readonly<{ bytes: number; preview: string; is_text: boolean; is_cut: boolean }>
  }>

export type LettersPage = Readonly<{
  letters: readonly LetterSummary[]
  next_cursor: string | null
  looked: number
  /** False: the search took too long to fill the page. Go on with `next_cursor`. */
  is_complete: boolean
  /** Null when only a search could tell. */
  total: number | null
}>

export type LetterHeader = Readonly<{ name: string; value: string | null; value_base64: string | null }>
export type PayloadForm = 'auto' | 'text' | 'json' | 'hex' | 'base64' | 'none'
export type LetterPayload = Readonly<{
  bytes: number
  form: Exclude<PayloadForm, 'auto'>
  value: unknown
  /** Why it is not in the form that was asked for. */
  problem: string | null
}>

export type LetterRedrive = Readonly<{
  number: number
  at: string
  actor: string
  campaign: Readonly<{ id: string; name: string; place: number }> | null
  target: Readonly<{ kind: OriginKind; name: string; partition: number | null; id: string }>
  edit: number | null
  /** Null while it is under way. */
  outcome: 'resolved' | 'failed' | 'unknown' | null
  ended_at: string | null
}>

export type LetterEdit = Readonly<{
  number: number
  at: string
  actor: string
  payload: LetterPayload
  key: string | null
  key_base64: string | null
  headers: readonly LetterHeader[]
}>

export type AuditEntry = Readonly<{
  id: number
  at: string
  actor: string
  action: string
  target: string
  reason: string
  request_id: string
  details: Readonly<Record<string, unknown>>
}>
export type AuditPage = Readonly<{
  entries: readonly AuditEntry[]
  next_cursor: string | null
  is_complete: boolean
}>

/** One letter, whole. */
export type LetterDetail = LetterFields &
  Readonly<{
    archived_at: string | null
    payload: LetterPayload
    headers: readonly LetterHeader[]
    /** Newest first: why it is dead, and up to 100 before. */
    failures: readonly (LetterFailure & Readonly<{ stack: string }>)[]
    /** Newest first: the last 100. */
    redrives: readonly LetterRedrive[]
    edits: readonly LetterEdit[]
    audit: readonly AuditEntry[]
  }>

/** A line of an export. Of payload and payload_base64 one is null: text where it is text. */
export type ExportedLetter = LetterFields &
  Readonly<{
    payload: string | null
    payload_base64: string | null
    headers: readonly LetterHeader[]
    failures: LetterDetail['failures']
    redrives: readonly LetterRedrive[]
    /** Goes on after this letter. */
    cursor: string
  }>
export type ExportEnd = Readonly<{
  is_complete: boolean
  letters: number
  looked: number
  next_cursor: string | null
  error: Readonly<{ code: string; message: string }> | null
}>

/** What a worker says of what it could not process. Bytes are text, `{ base64 }`, or any JSON. */
export type Envelope = Readonly<{
  /** What it is elsewhere: the same one in the same dead queue is one letter, however often it is sent. */
  source_id?: string
  original_topic?: string
  original_queue?: string
  original_partition?: number
  original_offset?: number | string
  /** Its id there, where it has no offset. */
  original_id?: string
  /** When it was made there: RFC 3339, or milliseconds since 1970. Like all times here. */
  original_timestamp?: string | number
  /** The cluster of its topic. */
  cluster?: string
  /** A text, `{base64}`, or any JSON, which is kept as it is written. */
  original_key?: unknown
  original_value?: unknown
  original_key_encoding?: 'text' | 'json' | 'base64'
  original_value_encoding?: 'text' | 'json' | 'base64'
  headers?:
    | Readonly<Record<string, unknown>>
    | readonly (readonly [string, unknown])[]
    | readonly Readonly<{ name: string; value: unknown }>[]
  /** A text alone is the message. */
  error_details?:
    | string
    | Readonly<{ exception_class?: string; message?: string; stack_trace?: string; code?: string }>
  reason?: string
  retry_count?: number
  worker_instance?: string
  consumer_group?: string
  first_failure_at?: string | number
  last_failure_at?: string | number
  /** When it became a dead letter; now, unless told. */
  dead_lettered_at?: string | number
  /** Failures before this one in any order, each like the envelope's own, with `failed_at`. The newest 100 are kept. */
  history?: readonly unknown[]
}>
/** `problems`: what of its envelope could not be read, or not be kept as it was sent. */
export type CapturedLetter = Readonly<{ id: string; is_new: boolean; problems: readonly string[] }>

export type SentLetter = Readonly<{
  id: string
  is_started: boolean
  /** Why not, as a code: missing, archived, redriving, leased, resolved, discarded, dead, exhausted, no-target, dead-target. */
  why: string | null
  message: string | null
  number: number | null
  target: Readonly<{ queue: string; partition: number; id: string }> | null
}>
export type SentLetters = Readonly<{ letters: readonly SentLetter[]; started: number; refused: number }>

export type ChangedLetter = Readonly<{
  id: string
  is_done: boolean
  why: string | null
  message: string | null
}>
export type DiscardedLetters = Readonly<{
  letters: readonly ChangedLetter[]
  discarded: number
  refused: number
}>
export type RestoredLetters = Readonly<{
  letters: readonly ChangedLetter[]
  restored: number
  refused: number
}>

export type ArchiveFilter = CountedFilter &
  Pick<LetterFilter, 'died_from' | 'died_until' | 'key' | 'key_base64' | 'text'> &
  Readonly<{ source_id?: OneOrMore<string>; archived_from?: string; archived_until?: string }>

export type ArchivePage = Readonly<{
  letters: readonly (LetterSummary & Readonly<{ archived_at: string }>)[]
  next_cursor: string | null
  looked: number
  /** False: the search took too long to fill the page. Go on with `next_cursor`. */
  is_complete: boolean
}>

export type CountedBy =
  | 'queue'
  | 'class'
  | 'status'
  | 'group'
  | 'origin'
  | 'reason'
  | 'slug'
  | 'error_class'
  | 'retry_count'
export type LetterCounts = Readonly<{
  counts: readonly Readonly<
    { count: number } & Partial<Record<Exclude<CountedBy, 'group' | 'retry_count' | 'status'>, string>> & {
        status?: LetterStatus
        group?: number
        retry_count?: number
      }
  >[]
  total: number
  /** Only as false: error classes are too many to be told apart. */
  is_exact?: boolean
}>

export type LetterGroup = Readonly<{
  id: number
  queue: string
  fingerprint: string
  title: string
  origin: string
  reason: string
  slug: string
  error_class: string
  first_seen_at: string
  /** When it last got a letter: one that died then, or failed again. */
  last_seen_at: string
  sample_id: string | null
  count: number
  statuses: Readonly<Record<LetterStatus, number>>
  /** Letters that it got per hour, 24 of them, the present one last. */
  trend: Readonly<{ from: string; counts: readonly number[] }>
}>
export type GroupsPage = Readonly<{ groups: readonly LetterGroup[]; next_cursor: string | null }>

/** One of `ids`, `filter` with at least one condition, and `all`: every letter of every dead queue. */
export type CampaignSelection = Readonly<{
  action: 'redrive' | 'discard'
  ids?: readonly string[]
  filter?: LetterFilter
  all?: boolean
  /** A queue, instead of where each came from. */
  target?: string
  include_dead?: boolean
}>
export type NewCampaign = CampaignSelection &
  CampaignPace &
  Readonly<{
    name: string
    reason: string
    /** So many first; the rest follows when they ended well. */
    canary_count?: number
  }>
export type CampaignPace = Readonly<{
  rate_per_second?: number
  /** The rate grows to that over this time, such as `5m`. */
  ramp?: string
  halt_ratio?: number
  halt_min?: number
}>
export type CampaignPreview = Readonly<{
  count: number
  is_exact: boolean
  looked: number
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
export type Campaign = Readonly<{
  id: string
  name: string
  reason: string
  actor: string
  action: 'redrive' | 'discard'
  state: 'freezing' | 'canary' | 'running' | 'paused' | 'halted' | 'cancelled' | 'done'
  state_reason: string
  /** Nothing will change any more. */
  is_ended: boolean
  /** The first of the ids that it was given; all of them are its letters. */
  ids: readonly string[] | null
  filter: LetterFilter | null
  target: string | null
  include_dead: boolean
  canary_count: number
  rate_per_second: number
  ramp: string
  halt_ratio: number
  halt_min: number
  created_at: string
  updated_at: string
  started_at: string | null
  ended_at: string | null
  /** Null while the set is being frozen. */
  size: number | null
  counts: Readonly<Record<CampaignLetterState, number>>
  rate: number
}>
export type CampaignsPage = Readonly<{ campaigns: readonly Campaign[]; next_cursor: string | null }>
export type CampaignLettersPage = Readonly<{
  letters: readonly Readonly<{
    place: number
    id: string
    state: CampaignLetterState
    why: string
    at: string | null
  }>[]
  next_cursor: string | null
}>
