/**
 * Dead letters. A letter is an item with an origin. Its id is its root id (27 characters); systems that need
 * a UUID use the first 16 of its 20 bytes.
 *
 * Every letter is counted by group, state and redrives in the transaction that changes it. So totals by
 * queue, origin, reason, slug, error class, group, state and redrives cost the number of groups, not of
 * letters.
 */

import type { GroupLifecycle, GroupLifecycleState } from '../../core/dead-letters/group-lifecycle.ts'
import type {
  CancelRefusal,
  LetterRefusal,
  RedriveRefusal,
} from '../../core/dead-letters/letter-decisions.ts'
import type { LetterIdRecord } from '../../core/dead-letters/letter-ids.ts'
import type { CampaignId, GroupId, ItemId, LetterId, QueueName } from '../../core/ids/ids.ts'
import type { Failure, Header, Item, RedriveRecord, SentOutcome } from '../../core/items/item.ts'
import type { JsonNumber } from '../../core/text/json-number.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { ArchivedItem } from './archive.ts'
import type { AuditContext } from './audit.ts'
import type { ListedState } from './items.ts'

export type { RedriveRefusal } from '../../core/dead-letters/letter-decisions.ts'

export type LetterCommand =
  | RedriveLetters
  | EndRedrives
  | CancelRedrives
  | DiscardLetters
  | RestoreLetters
  | EditLetter
  | ReplanRedrives
  | PostponeRedrives
  | PurgeArchive

export type LetterResults = {
  redrive: readonly RedriveResult[]
  'end-redrives': readonly EndRedriveResult[]
  'cancel-redrives': readonly CancelRedriveResult[]
  discard: readonly DiscardResult[]
  restore: readonly RestoreResult[]
  'edit-letter': { number: number }
  'replan-redrives': ReplanResult
  'postpone-redrives': PostponeResult
  'purge-archive': { purged: number; isMore: boolean }
}

/** Where a letter is stored. */
export type LetterLocation = 'live' | 'archive'
export type PayloadSize = Readonly<{ letterId: LetterId; payloadBytes: number }>

export interface LetterStore {
  /**
   * Live letters in any state, in the order of the ids. Letters that do not exist are left out. `bytes` is
   * `all` by default.
   */
  getLetters(letterIds: readonly LetterId[], bytes?: 'head' | 'all'): Promise<readonly ListedLetter[]>
  getArchivedLetters(letterIds: readonly LetterId[]): Promise<readonly ArchivedItem[]>
  /**
   * The sizes of payloads, without reading them, in any order. Letters that do not exist are left out.
   * `location` is `live` by default.
   */
  readPayloadSizes(letterIds: readonly LetterId[], location?: LetterLocation): Promise<readonly PayloadSize[]>
  /** The ids of the letters that have these UUIDs, live or archived. Unknown UUIDs are left out. */
  findLettersByUuid(
    uuids: readonly string[],
  ): Promise<readonly Readonly<{ uuid: string; letterId: LetterId }>[]>
  /**
   * The letters, live or archived, that had these ids: at their source, before they died, or as the item of a
   * redrive. An id can belong to several letters; unknown ids are left out.
   */
  findLetterIds(ids: readonly string[]): Promise<readonly LetterIdRecord[]>
  /**
   * Finds the ranges of an index that hold the letters of a filter. The search (storage/search) scans them
   * step by step. Ranges are found from the counts, so they are valid for a short time.
   */
  findRanges(query: RangesQuery): Promise<LetterRanges>
  /**
   * Numbers of matching letters, one for each distinct combination of `by`, without zeros. Letters of groups
   * that have no error class of their own count under the class `anyClass` (core/dead-letters/cause.ts);
   * lists find them by their own class.
   */
  countLetters(query: LetterCountsQuery): Promise<readonly LetterCount[]>
  /**
   * The exact number of open letters (waiting, scheduled, dead) that died at or after `since`. `since` must
   * be within the last 24 hours.
   */
  countOpenSince(since: Instant, queues?: readonly QueueName[]): Promise<number>
  /**
   * The time of death of the oldest open letter (waiting, scheduled, dead) of each of these queues. Queues
   * without open letters are left out. The cost depends on the number of queues, not of letters.
   */
  readOldestOpen(queues: readonly QueueName[]): Promise<readonly OldestOpen[]>
  /**
   * Groups with the most matching letters first, then by id. Merged groups are part of the group that they
   * are shown as.
   */
  listGroups(query: GroupsQuery): Promise<readonly GroupFacts[]>
  /**
   * The number of letters that died, or failed again, in each hour from `since` on. Groups that were merged
   * into one of these count as part of it. Hours without letters are left out. The store keeps these numbers
   * for a week.
   */
  groupArrivals(groupIds: readonly GroupId[], since: Instant): Promise<readonly GroupArrivals[]>
  /**
   * Announces letters that are redriven soon, so that the store can read them ahead. The result of a redrive
   * does not depend on it.
   */
  prefetchLetters(letterIds: readonly LetterId[]): Promise<void>
  /** Oldest first. The newest versions have payloads, up to `stepBytesMax`. */
  listEdits(letterId: LetterId): Promise<readonly LetterEdit[]>
  /** The namespaces of the queues of live and archived letters. Unknown ids are left out. */
  readLetterNamespaces(letterIds: readonly LetterId[]): Promise<readonly LetterNamespace[]>
}

export type OldestOpen = Readonly<{ queue: QueueName; diedAt: Instant }>

export type LetterNamespace = Readonly<{ letterId: LetterId; namespace: string }>

/**
 * Redrives letters to queues of this store. Each letter becomes leased by its redrive, and its copy (the same
 * bytes, or an edited version) becomes an item of the target queue with `letterId`, in one transaction. A
 * letter that cannot be redriven stays as it is, and its result has the reason.
 *
 * The end of a redrive needs no command. When the item completes, its letter is resolved; when the item dies,
 * its letter waits again; when the item is deleted, the outcome is `unknown`. Each change is in the
 * transaction of the item, at the time of its command, or of the store's clock if the command has no time.
 */
export type RedriveLetters = Readonly<{
  op: 'redrive'
  letters: readonly Readonly<{
    letterId: LetterId
    /** The name of the target queue; null: the queue that the letter came from. */
    queue: QueueName | null
    /**
     * The edited version to send: the number of a stored version, or a new version. A new version is stored
     * only if the letter is redriven, with an audit row of its own (`letter.edit`).
     */
    edit?: number | EditedLetter | null
    campaign?: RedriveRecord['campaign']
  }>[]
  /** Redrive DEAD letters too, because a person asks for it. */
  isDeadAllowed: boolean
  /** Refuse letters that have used all redrives that their policy allows. */
  isCapped: boolean
  /** Redrive only letters whose automatic redrive is due at `now`. */
  isDueOnly?: boolean
  /**
   * Redrive only to queues of these namespaces; others are refused as `no-target`. Default: to every queue.
   */
  targetNamespaces?: readonly string[]
  actor: string
  now: Instant
  audit?: AuditContext
}>
export type RedriveResult = Readonly<
  | {
      letterId: LetterId
      isStarted: true
      queue: QueueName
      partition: number
      id: ItemId
      /** Ordinal of this redrive of the letter, starting at 1. */
      number: number
      /** The number of the edited version, if one was sent. */
      edit?: number
    }
  | { letterId: LetterId; isStarted: false; refusal: RedriveRefusal }
>
/**
 * Ends redrives to other systems (webhook, Kafka), or redrives whose items no longer exist. Letters that are
 * not being redriven stay as they are.
 */
export type EndRedrives = Readonly<{
  op: 'end-redrives'
  ends: readonly Readonly<{
    letterId: LetterId
    outcome: SentOutcome
    failure: Failure | null
    /** Ends only the redrive with this number; default: the redrive in progress, whatever its number. */
    number?: number
    /** Where the letter was sent, if the start of the redrive could not know it. */
    target?: RedriveRecord['target']
  }>[]
  now: Instant
}>
/** `state`: the new state of the letter; null: it was not being redriven. */
export type EndRedriveResult = Readonly<{ letterId: LetterId; state: Item['state'] | null }>

/**
 * Cancels redrives whose items no worker has leased: removes the item from the target queue, where it counts
 * as deleted, and makes the letter as it was before the redrive. Both happen in one transaction. A campaign
 * that sent the letter counts it as skipped, with the refusal `redrive-cancelled`.
 */
export type CancelRedrives = Readonly<{
  op: 'cancel-redrives'
  letterIds: readonly LetterId[]
  now: Instant
  audit?: AuditContext
}>
/** `target`: the queue that the item was removed from. `refusal`: null if the redrive was cancelled. */
export type CancelRedriveResult = Readonly<{
  letterId: LetterId
  isCancelled: boolean
  refusal: CancelRefusal | null
  target: QueueName | null
}>

export type DiscardLetters = Readonly<{
  op: 'discard'
  letters: readonly Readonly<{ letterId: LetterId; campaign?: RedriveRecord['campaign'] }>[]
  reason: string
  now: Instant
  audit?: AuditContext
}>
export type DiscardResult = Readonly<{
  letterId: LetterId
  isDiscarded: boolean
  refusal: LetterRefusal | null
}>

/**
 * Makes discarded letters waiting or dead again (core/dead-letters/letter.ts), and moves letters from the
 * archive back to their queue in the same way. Exactly the rows that are deleted from the archive are
 * inserted.
 */
export type RestoreLetters = Readonly<{
  op: 'restore'
  letterIds: readonly LetterId[]
  /** Restore only letters that this campaign discarded; others are refused as `not-discarded`. */
  campaignId?: CampaignId
  now: Instant
  audit?: AuditContext
}>
/**
 * `queue-gone`: the queue of the letter was deleted. `taken`: another letter in the queue has the same source
 * id. `not-discarded`: the letter is not in the archive and was not discarded.
 */
export type RestoreResult = Readonly<{
  letterId: LetterId
  isRestored: boolean
  refusal: 'missing' | 'queue-gone' | 'taken' | 'not-discarded' | null
}>

/** Stores an edited version of a live letter, which stays as it is. Rejects with LETTER_NOT_FOUND. */
export type EditLetter = Readonly<
  EditedLetter & { op: 'edit-letter'; letterId: LetterId; actor: string; now: Instant; audit?: AuditContext }
>
/** Undefined fields are those of the letter. */
export type EditedLetter = Readonly<{
  payload?: Uint8Array
  key?: Uint8Array | null
  headers?: readonly Header[]
}>
export type LetterEdit = Readonly<{
  number: number
  at: Instant
  actor: string
  payload: Uint8Array
  /** The size of a payload that was not read. */
  payloadBytes?: number
  key: Uint8Array | null
  headers: readonly Header[]
}>

/**
 * Applies a changed redrive policy to the next letters of a queue: schedules or unschedules their automatic
 * redrives. Reads up to `countMax` letters in the order of their death. The position is stored with the queue
 * (`replannedUntil`), so that any server can continue. Does nothing if the policy did not change. A waiting
 * letter that reached the limit of an automatic policy becomes DEAD, with an audit row.
 */
export type ReplanRedrives = Readonly<{
  op: 'replan-redrives'
  queue: QueueName
  countMax: number
  now: Instant
  audit?: AuditContext
}>
export type ReplanResult = Readonly<{ changed: number; isMore: boolean }>

/**
 * Postpones due automatic redrives that could not start because the letter has no target queue: they are due
 * again at `until`. A letter that reached the redrive limit becomes DEAD instead, with an audit row. Letters
 * that are not waiting, or not due at `now`, stay as they are, so that each letter is postponed once even if
 * several servers ask.
 */
export type PostponeRedrives = Readonly<{
  op: 'postpone-redrives'
  letterIds: readonly LetterId[]
  until: Instant
  now: Instant
  audit?: AuditContext
}>
export type PostponeResult = Readonly<{ postponed: number; exhausted: number }>

/**
 * Deletes items that were archived before `archivedBefore` for good, oldest first. Ends at `countMax` items
 * or at `stepBytesMax` bytes; `isMore` as in `Archive`.
 */
export type PurgeArchive = Readonly<{
  op: 'purge-archive'
  queue: QueueName
  archivedBefore: Instant
  countMax: number
  audit?: AuditContext
}>

/**
 * A letter matches if it matches every given field. A list matches any of its values; an empty list matches
 * nothing.
 */
export type CountedFilter = Readonly<{
  queues?: readonly QueueName[]
  /** Only letters in queues of these namespaces. */
  namespaces?: readonly string[]
  states?: readonly ListedState[]
  /** Groups that were merged into these match too. */
  groupIds?: readonly GroupId[]
  /** Keys of causes. */
  causes?: readonly string[]
  origins?: readonly string[]
  errorCodes?: readonly string[]
  slugs?: readonly string[]
  errorClasses?: readonly string[]
  /** Both bounds included. Numbers from `redrivesCounted` on are counted together. */
  retryCount?: Readonly<{ min?: number; max?: number }>
}>
/** Letters with this many redrives or more are counted together. */
export const redrivesCounted = 10

export type LetterFilter = CountedFilter &
  Readonly<{
    /** The bounds of all time ranges are included. */
    died?: Readonly<{ from?: Instant; until?: Instant }>
    updated?: Readonly<{ from?: Instant; until?: Instant }>
    lastFailed?: Readonly<{ from?: Instant; until?: Instant }>
    /** Only for archived letters. */
    archived?: Readonly<{ from?: Instant; until?: Instant }>
    letterIds?: readonly LetterId[]
    sourceIds?: readonly string[]
    references?: readonly string[]
    /** The trace ids of `traceparent` headers, as `readTraceId` (shared/trace-id.ts) returns them. */
    traceIds?: readonly string[]
    key?: Uint8Array
    /** A part of the message of the present failure. Upper and lower case are equal. */
    text?: string
    /**
     * A part of the payload, as text in UTF-8, within its first `searchedPayloadMax` bytes
     * (shared/match-letter.ts). Upper and lower case
     * are equal.
     */
    payloadText?: string
    header?: Readonly<{ name: string; value?: string }>
    json?: Readonly<{ path: readonly (string | number)[]; value: string | boolean | null | JsonNumber }>
    /** The automatic redrive is due at this time or earlier. */
    dueBy?: Instant
  }>

/**
 * How much to read of payload, key, headers and earlier failures. `none`: nothing. `head`: the key and the
 * beginning of the payload. `all`: everything. Fields that are not read are empty.
 */
export type LetterBytes = 'none' | 'head' | 'all'
/** The length of the beginning of a payload. */
export const headBytes = 256
/**
 * A page of whole letters ends with the letter that reaches this number of bytes. A payload may have 16 MiB,
 * so a page limited only by its number of letters could exhaust the memory or block the connection.
 */
export const pageBytesMax = 16 * 2 ** 20

/** The approximate bytes that a letter adds to its page: the fields that may be long. */
export function measureLetter({
  payload,
  headers,
  history,
}: Pick<Item, 'payload' | 'headers' | 'history'>): number {
  const headerBytes = headers.reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0), 0)
  return history.reduce(
    (sum, { message, stack }) => sum + message.length + stack.length,
    payload.length + headerBytes,
  )
}

export type LetterOrder = 'deadLetteredAt' | 'updatedAt'
/** The time by which letters are read. `archivedAt` reads the archive, the others read live letters. */
export type SearchOrder = LetterOrder | 'archivedAt'
/** The position of a letter in the order: its time and the id of its item. */
export type LetterCursor = Readonly<{ value: Instant; id: ItemId }>
export type RangesQuery = Readonly<{
  filter: LetterFilter
  order: SearchOrder
  isDescending: boolean
  /** Only live letters whose arrival has at most this number. */
  arrivedUntil?: number
}>
/** The limits of one step of a search. The step ends with the first limit that it reaches. */
export type ScanBounds = Readonly<{
  /** Start after this position. */
  after?: LetterCursor
  /** Return at most this many letters. */
  countMax: number
  /** Read at most this many letters. */
  examinedMax: number
  /** Return after about this time. A store that runs a step as one statement cannot stop it earlier. */
  msMax: number
  bytes: LetterBytes
  /** Ordinal of the step in its search, starting at 0. Later steps may read more of each range. */
  round: number
}>
/** `at`: the time of the letter in the order of the query. */
export type FoundLetter = Readonly<{ item: ListedLetter; at: Instant }>
export type LetterScan = Readonly<{
  found: readonly FoundLetter[]
  /** The number of letters that were read, including the letters found. */
  examinedCount: number
  /** Continue after this position; null: no more letters match. */
  next: LetterCursor | null
}>
export interface LetterRanges {
  /** Reads the next letters of the ranges in order, and returns the letters that match the filter. */
  scan(bounds: ScanBounds): Promise<LetterScan>
}
/**
 * `payloadBytes`: the size of the payload if only its beginning was read. Then only the header `traceparent`
 * was read of the headers.
 */
export type ListedLetter = Item & Readonly<{ payloadBytes?: number }>
export type ListedArchived = Readonly<{ item: ListedLetter; archivedAt: Instant }>

export type CountedBy =
  | 'queue'
  | 'state'
  | 'group'
  | 'origin'
  | 'errorCode'
  | 'slug'
  | 'errorClass'
  | 'retryCount'
export type LetterCountsQuery = Readonly<{ filter: CountedFilter; by: readonly CountedBy[] }>
/** Has the fields that the query names in `by`. */
export type LetterCount = Readonly<{
  count: number
  queue?: QueueName
  state?: ListedState
  group?: GroupId
  origin?: string
  errorCode?: string
  slug?: string
  errorClass?: string
  retryCount?: number
}>

export type GroupsQuery = Readonly<{
  filter: CountedFilter
  /** Start after this position. */
  after?: Readonly<{ count: number; id: number }>
  countMax: number
  /** List groups without a matching letter too. */
  isEmptyToo: boolean
  /** Only groups in one of these states at `now`. */
  lifecycle?: Readonly<{ states: readonly GroupLifecycleState[]; now: Instant }>
}>
export type GroupFacts = Readonly<{
  id: GroupId
  queue: QueueName
  fingerprint: string
  causeKey: string
  origin: string
  errorCode: string
  slug: string
  errorClass: string
  /** The pinned title, or the learned one. */
  title: string
  isTitlePinned: boolean
  /** The groups that were merged into this one. */
  mergedIds: readonly GroupId[]
  firstSeenAt: Instant
  /** When a letter of the group last died or failed again. The letter may have left the group since. */
  lastSeenAt: Instant
  /** The live letter of the group that died last. */
  sampleId: LetterId | null
  /** The number of matching letters, and their numbers by state. */
  count: number
  states: Readonly<Partial<Record<ListedState, number>>>
  /** As stored: see `readLifecycleAt`. */
  lifecycle: GroupLifecycle
}>
export type GroupArrivals = Readonly<{ groupId: GroupId; hour: Instant; count: number }>
