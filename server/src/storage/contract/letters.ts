/**
 * What a store does with dead letters. A letter is an item with an origin; it is known by its root id (27
 * characters), and to systems that ask for a UUID by the first 16 of its 20 bytes.
 *
 * Counts: every letter is counted by group, state and redrives in the transaction that changes it, so totals
 * of any view by queue, origin, reason, slug, error class, group, state and redrives cost the number of groups.
 */
import type { Instant } from '../../core/instant.ts'
import type { Failure, Header, Item, Outcome, RedriveRecord } from '../../core/item.ts'
import type { JsonNumber } from '../../core/json-number.ts'
import type { LetterRefusal, RedriveRefusal } from '../../core/letter-decisions.ts'
import type { ArchivedItem } from './archive.ts'
import type { AuditContext } from './audit.ts'
import type { ListedState } from './items.ts'

export type { RedriveRefusal } from '../../core/letter-decisions.ts'

export type LetterCommand =
  | RedriveLetters
  | EndRedrives
  | DiscardLetters
  | RestoreLetters
  | EditLetter
  | ReplanRedrives
  | PostponeRedrives
  | PurgeArchive

export type LetterResults = {
  redrive: readonly RedriveResult[]
  'end-redrives': readonly RedriveEnded[]
  discard: readonly DiscardResult[]
  restore: readonly RestoreResult[]
  'edit-letter': { number: number }
  'replan-redrives': Replanned
  'postpone-redrives': Postponed
  'purge-archive': { purged: number; isMore: boolean }
}

export type LetterPlace = 'live' | 'archive'
export type LetterWeight = Readonly<{ letterId: string; payloadBytes: number }>

export interface LetterStore {
  /** Live letters, whatever their state, in the order asked for; those that are not there are left out. All of their bytes unless told. */
  getLetters(letterIds: readonly string[], bytes?: 'head' | 'all'): Promise<readonly ListedLetter[]>
  getArchivedLetters(letterIds: readonly string[]): Promise<readonly ArchivedItem[]>
  /** How many bytes the payload of each of these letters has, live ones unless told; those that are not there are left out. Reads no payload. */
  weighLetters(letterIds: readonly string[], place?: LetterPlace): Promise<readonly LetterWeight[]>
  /** The root ids that these UUIDs stand for, live or archived; unknown ones are left out. */
  findLettersByUuid(
    uuids: readonly string[],
  ): Promise<readonly Readonly<{ uuid: string; letterId: string }>[]>
  listLetters(query: LettersQuery): Promise<LettersPage>
  /** Newest archived first by (archivedAt, id), of each payload the beginning. */
  listArchivedLetters(query: ArchivedLettersQuery): Promise<readonly ListedArchived[]>
  /** The same with a filter: looks at them in that order, at no more than `lookMax`, for a moment at most. */
  findArchivedLetters(query: ArchiveQuery): Promise<ArchivePage>
  /**
   * Sums over all letters that match, one per distinct combination of `by`. Zero sums are left out. Letters whose class
   * their group does not tell are counted as of the class `anyClass` (core/cause.ts); lists find them by their own.
   */
  countLetters(query: LetterCountsQuery): Promise<readonly LetterCount[]>
  /** Open letters (waiting, scheduled, dead) that died at or after `since`, exactly. For times within 24 hours of now. */
  countOpenSince(since: Instant, queues?: readonly string[]): Promise<number>
  /** Groups with letters or without, those with the most matching letters first, ties by id. */
  listGroups(query: GroupsQuery): Promise<readonly GroupFacts[]>
  /** Of those that are there. A group's slug never changes. */
  groupSlugs(groupIds: readonly number[]): Promise<readonly GroupSlug[]>
  /**
   * How many letters the group got, by the hour in which they died, or failed anew and came back, from `since` on; hours
   * without any are left out. Kept for a week.
   */
  groupArrivals(groupIds: readonly number[], since: Instant): Promise<readonly GroupArrivals[]>
  /** These are to be sent soon: a store that gains by it reads them ahead. What `redrive` does does not depend on it. */
  foreseeRedrive(letterIds: readonly string[]): Promise<void>
  /** Oldest first. */
  listEdits(letterId: string): Promise<readonly LetterEdit[]>
}

/**
 * Sends letters to a queue of this store: each letter becomes leased by its redrive, and its copy (the same bytes,
 * or an edited version) is an item of the target with `letterId`. One transaction: both or neither. A letter that
 * cannot be sent changes nothing, and its answer says why.
 *
 * The end needs no command: the item that completes resolves its letter, the one that dies gives it back,
 * the one that is deleted leaves it `unknown`, each in its own transaction, and at the time of the store's clock
 * where the command has none.
 */
export type RedriveLetters = Readonly<{
  op: 'redrive'
  letters: readonly Readonly<{
    letterId: string
    /** Null: the queue it came from. */
    queue: string | null
    /**
     * The edited version to send: the number of one that is kept, or a new one, which is kept only if the letter goes.
     * Then it has an audit row of its own, `letter.edit`.
     */
    edit?: number | EditedLetter | null
    campaign?: RedriveRecord['campaign']
  }>[]
  /** Also what is DEAD, because a person says so. */
  isDeadAllowed: boolean
  /** Not what used up the redrives of its policy. */
  isCapped: boolean
  /** Only letters whose automatic redrive is due by now. */
  isDueOnly?: boolean
  actor: string
  now: Instant
  trace?: AuditContext
}>
export type RedriveResult = Readonly<
  | {
      letterId: string
      isStarted: true
      queue: string
      partition: number
      id: string
      /** The how manieth redrive of this letter. */
      number: number
      /** The edited version that was sent, if one was. */
      edit?: number
    }
  | { letterId: string; isStarted: false; why: RedriveRefusal }
>
/** How redrives ended that went elsewhere (webhook, Kafka), or whose items are gone. Those not under way are passed over. */
export type EndRedrives = Readonly<{
  op: 'end-redrives'
  ends: readonly Readonly<{ letterId: string; outcome: Outcome; failure: Failure | null }>[]
  now: Instant
}>
/** `state` is the letter's now; null when it was not under way. */
export type RedriveEnded = Readonly<{ letterId: string; state: Item['state'] | null }>

export type DiscardLetters = Readonly<{
  op: 'discard'
  letters: readonly Readonly<{ letterId: string; campaign?: RedriveRecord['campaign'] }>[]
  reason: string
  now: Instant
  trace?: AuditContext
}>
export type DiscardResult = Readonly<{ letterId: string; isDiscarded: boolean; why: LetterRefusal | null }>

/** Back from the archive to its queue, waiting or dead (core/letter.ts): exactly the rows that are inserted are the ones that are deleted. */
export type RestoreLetters = Readonly<{
  op: 'restore'
  letterIds: readonly string[]
  now: Instant
  trace?: AuditContext
}>
/** `queue-gone`: the queue it was in was deleted. `taken`: its source id is in the queue again. */
export type RestoreResult = Readonly<{
  letterId: string
  isRestored: boolean
  why: 'missing' | 'queue-gone' | 'taken' | null
}>

/** Keeps an edited version of a letter; the letter itself stays as it is. Rejects with LETTER_NOT_FOUND. */
export type EditLetter = Readonly<
  EditedLetter & { op: 'edit-letter'; letterId: string; actor: string; now: Instant; trace?: AuditContext }
>
/** What is undefined is as in the letter. */
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
  key: Uint8Array | null
  headers: readonly Header[]
}>

/**
 * Tells the next letters of a queue that its redrive policy was changed: when each goes back by itself, or that it does
 * not any more. Looks at no more than `countMax`, in the order of death; how far that got is kept with the queue
 * (`replannedUntil`), so that any server goes on with it. Does nothing where nothing was changed. What waits and has reached
 * the cap of a policy that sends by itself is DEAD now, each with a row of the trace.
 */
export type ReplanRedrives = Readonly<{
  op: 'replan-redrives'
  queue: string
  countMax: number
  now: Instant
  trace?: AuditContext
}>
export type Replanned = Readonly<{ changed: number; isMore: boolean }>

/**
 * Letters whose automatic redrive is due and could not start, because there is no queue that they can go to: it is due
 * again at `until`. Or because its redrives are used up: it is DEAD, with a row of the trace. Decided anew here: what is not
 * due by now, or does not wait, stays as it is, so that this happens to each once, however many servers come to it.
 */
export type PostponeRedrives = Readonly<{
  op: 'postpone-redrives'
  letterIds: readonly string[]
  until: Instant
  now: Instant
  trace?: AuditContext
}>
export type Postponed = Readonly<{ postponed: number; exhausted: number }>

/** Removes what was archived before then from the archive, for good, and ends at `stepBytesMax`. `isMore`: as of `Archive`. */
export type PurgeArchive = Readonly<{
  op: 'purge-archive'
  queue: string
  archivedBefore: Instant
  countMax: number
  trace?: AuditContext
}>

/** All that is given must hold. Lists: any of them; an empty list matches nothing. */
export type CountedFilter = Readonly<{
  queues?: readonly string[]
  states?: readonly ListedState[]
  groupIds?: readonly number[]
  origins?: readonly string[]
  reasons?: readonly string[]
  slugs?: readonly string[]
  errorClasses?: readonly string[]
  /** Both included. From `redrivesCounted` on, counted together. */
  redrives?: Readonly<{ min?: number; max?: number }>
}>
/** Letters that came back so often or oftener are counted as one. */
export const redrivesCounted = 10

export type LetterFilter = CountedFilter &
  Readonly<{
    /** Both included. */
    died?: Readonly<{ from?: Instant; until?: Instant }>
    updated?: Readonly<{ from?: Instant; until?: Instant }>
    lastFailed?: Readonly<{ from?: Instant; until?: Instant }>
    key?: Uint8Array
    /** In the message of the present failure, whatever the case. */
    text?: string
    header?: Readonly<{ name: string; value?: string }>
    json?: Readonly<{ path: readonly (string | number)[]; value: string | boolean | null | JsonNumber }>
    /** The automatic redrive is due by then. */
    dueBy?: Instant
    /** The store got it by then, or got it back from the archive: whatever its sender says of its death. */
    arrivedUntil?: Instant
  }>

/** Of payload, key, headers and earlier failures: none of them, the key and the beginning of the payload, or all. What is left out is empty. */
export type LetterBytes = 'none' | 'head' | 'all'
/** The beginning of a payload. */
export const headBytes = 256
/**
 * Once the payloads of whole letters are so many bytes together the page ends, however few letters were found: a payload
 * may have 16 MiB, and a page of such must fill neither the memory nor the line.
 */
export const pageBytesMax = 16 * 2 ** 20

/** What a letter adds to its page: all that may be long, about. */
export function weightOf({
  payload,
  headers,
  history,
}: Pick<Item, 'payload' | 'headers' | 'history'>): number {
  const ofHeaders = headers.reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0), 0)
  return history.reduce(
    (sum, { message, stack }) => sum + message.length + stack.length,
    payload.length + ofHeaders,
  )
}

export type LetterOrder = 'diedAt' | 'updatedAt'
/** The place of a letter in the order. */
export type LetterCursor = Readonly<{ value: Instant; id: string }>
export type LettersQuery = Readonly<{
  filter: LetterFilter
  order: LetterOrder
  isDescending: boolean
  /** Begin after it. */
  after?: LetterCursor
  countMax: number
  /** Letters to look at, at most: what must be searched for is searched in steps. */
  lookMax: number
  bytes: LetterBytes
}>
/** `payloadBytes`: how long the payload is, where only its beginning was read. */
export type ListedLetter = Item & Readonly<{ payloadBytes?: number }>
export type ListedArchived = Readonly<{ item: ListedLetter; archivedAt: Instant }>
export type LettersPage = Readonly<{
  letters: readonly ListedLetter[]
  /** How many were looked at; at least as many as were found. */
  looked: number
  /** Go on from here; null: there is nothing more. */
  next: LetterCursor | null
}>

export type ArchivedLettersQuery = Readonly<{
  queues?: readonly string[]
  after?: ArchiveCursor
  countMax: number
}>

/** The archive has one index, by queue and time: all else is asked of one letter after the other. */
export type ArchiveFilter = CountedFilter &
  Pick<LetterFilter, 'died' | 'key' | 'text'> &
  Readonly<{
    /** Both included. */
    archived?: Readonly<{ from?: Instant; until?: Instant }>
    sourceIds?: readonly string[]
  }>
export type ArchiveCursor = Readonly<{ archivedAt: Instant; id: string }>
export type ArchiveQuery = Readonly<{
  filter: ArchiveFilter
  after?: ArchiveCursor
  countMax: number
  lookMax: number
}>
export type ArchivePage = Readonly<{
  letters: readonly ListedArchived[]
  /** How many items of the archive were looked at; at least as many as were found. */
  looked: number
  /** Go on from here; null: there is nothing more. */
  next: ArchiveCursor | null
}>

export type CountedBy = 'queue' | 'state' | 'group' | 'origin' | 'reason' | 'slug' | 'errorClass' | 'redrives'
export type LetterCountsQuery = Readonly<{ filter: CountedFilter; by: readonly CountedBy[] }>
/** Only what was asked for in `by` is set. */
export type LetterCount = Readonly<{
  count: number
  queue?: string
  state?: ListedState
  group?: number
  origin?: string
  reason?: string
  slug?: string
  errorClass?: string
  redrives?: number
}>

export type GroupsQuery = Readonly<{
  filter: CountedFilter
  /** Begin after it. */
  after?: Readonly<{ count: number; id: number }>
  countMax: number
  /** Whether groups without a matching letter are listed too. */
  isEmptyToo: boolean
}>
export type GroupFacts = Readonly<{
  id: number
  queue: string
  fingerprint: string
  origin: string
  reason: string
  slug: string
  errorClass: string
  title: string
  firstSeenAt: Instant
  /** When it last got a letter, by its death or because it failed anew; also when that is elsewhere now. */
  lastSeenAt: Instant
  /** Of the letters that are still there the one that died last. */
  sampleId: string | null
  /** Matching letters, and those by state. */
  count: number
  states: Readonly<Partial<Record<ListedState, number>>>
}>
export type GroupSlug = Readonly<{ id: number; slug: string }>
export type GroupArrivals = Readonly<{ groupId: number; hour: Instant; count: number }>
