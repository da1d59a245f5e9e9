/**
 * What people and programs can do with dead letters. The HTTP edges, the command line and the passes of the
 * server use these functions; none of them talks to the store about letters by itself.
 */
import type { Instant } from '../core/instant.ts'
import type { Failure, Header, Item, Origin } from '../core/item.ts'
import type { Trace } from '../engine/engine.ts'
import type { AuditRow } from '../storage/contract/audit.ts'
import type { CampaignCounts, CampaignLetter, CampaignLetterState } from '../storage/contract/campaigns.ts'
import type {
  ArchivePage,
  ArchiveQuery,
  CountedBy,
  CountedFilter,
  DiscardResult,
  EditedLetter,
  GroupArrivals,
  GroupFacts,
  GroupsQuery,
  LetterBytes,
  LetterCount,
  LetterCountsQuery,
  LetterCursor,
  LetterEdit,
  LetterFilter,
  LetterOrder,
  ListedLetter,
  RedriveResult,
  RestoreResult,
} from '../storage/contract/letters.ts'

export interface Letters {
  /**
   * Stores letters that died elsewhere. One whose source id is in the dead queue already (also as a tombstone)
   * is answered with the letter that is there. In steps of 1,000: repeat the call after a failure.
   */
  capture(queue: string, letters: readonly CapturedLetter[], trace?: Trace): Promise<readonly Captured[]>

  /** By root id or UUID, live or archived; null when it is neither. */
  find(id: string): Promise<LetterDetail | null>
  /** Root ids for root ids and UUIDs; null for what is neither, or stands for no letter. */
  resolveIds(ids: readonly string[]): Promise<readonly (string | null)[]>
  /** Returns when the page is full, everything was looked at, or the time is over; then `next` goes on. */
  list(query: LetterSearch): Promise<LetterSearchPage>
  count(query: LetterCountsQuery): Promise<readonly LetterCount[]>
  countOpenSince(since: Instant): Promise<number>
  groups(query: GroupsQuery): Promise<readonly GroupFacts[]>
  /**
   * Gives the slug that a letter is counted under, for these letters: that of its group, which in a queue with too
   * many causes is not always that of its own message.
   */
  slugs(letters: readonly Item[]): Promise<(letter: Item) => string>
  /** Whether counts can tell how many letters match, and of which kind: in a queue with too many classes not always by class. */
  areCountsExact(filter: CountedFilter, by?: readonly CountedBy[]): Promise<boolean>
  groupArrivals(groupIds: readonly number[], since: Instant): Promise<readonly GroupArrivals[]>
  /** The last archived first; returns as `list` does. */
  listArchived(query: ArchiveSearch): Promise<ArchivePage>

  /** Each letter by itself: what cannot be sent says why, the others go. Each that went has its audit row. */
  redrive(letterIds: readonly string[], how: RedriveHow, trace: Trace): Promise<readonly RedriveResult[]>
  /** Keeps an edited version and gives its number; `redrive` with that number sends it. */
  edit(letterId: string, changes: LetterChanges, trace: Trace): Promise<number>
  discard(letterIds: readonly string[], trace: Trace): Promise<readonly DiscardResult[]>
  restore(letterIds: readonly string[], trace: Trace): Promise<readonly RestoreResult[]>

  readonly campaigns: Campaigns

  /** The passes of the background: each does what is due now and says whether there is more. Tests call them. */
  readonly passes: Readonly<{
    /** Automatic redrives. `isFresh`: by the policies as they are now, not as they were a moment ago. */
    auto(options?: Readonly<{ isFresh?: boolean }>): Promise<boolean>
    /** One step of every campaign that is to be worked on. */
    campaigns(): Promise<boolean>
    /** Archives and purges what retention says, one batch per queue. */
    retention(): Promise<boolean>
  }>
  /** All that retention says, now; gives what it did per queue. */
  runRetention(options: RetentionOptions): Promise<readonly RetentionDone[]>
  /** The same without doing it. */
  previewRetention(): Promise<readonly RetentionDone[]>

  close(): Promise<void>
}

export type CapturedLetter = Readonly<{
  /** Unique in the dead queue; null: never a repeat. */
  sourceId: string | null
  origin: Origin
  payload: Uint8Array
  key: Uint8Array | null
  headers: readonly Header[]
  failure: Failure
  /** Failures before that one, newest first. */
  history: readonly Failure[]
  diedAt?: Instant
}>
/** `isNew` false: it was there already, as `letterId`. */
export type Captured = Readonly<{ letterId: string; isNew: boolean }>

export type LetterDetail = Readonly<{
  item: Item
  archivedAt: Instant | null
  edits: readonly LetterEdit[]
  /** Newest first; actions on the letter itself and, by campaign, on the set it was in. */
  audit: readonly AuditRow[]
}>

export type LetterSearch = Readonly<{
  filter: LetterFilter
  order: LetterOrder
  isDescending: boolean
  after?: LetterCursor
  countMax: number
  /** With `all` there may be fewer letters than asked for, and a `next`: whole letters may be large. */
  bytes: LetterBytes
  /** How long to search at most; default 1 s. */
  msMax?: number
}>
export type LetterSearchPage = Readonly<{
  letters: readonly ListedLetter[]
  looked: number
  /** Go on from here; null: there is nothing more. */
  next: LetterCursor | null
  /** How many match in all, where the counts can tell; null where only a search could. */
  total: number | null
}>
/** `msMax`: how long to search at most; default 1 s. */
export type ArchiveSearch = Omit<ArchiveQuery, 'lookMax'> & Readonly<{ msMax?: number }>

export type RedriveHow = Readonly<{
  /** A queue; null: where each came from. */
  target: string | null
  /** An edited version by its number, or a new one: kept only where the letter goes. Null: the letter as it is. */
  edit: number | LetterChanges | null
  isDeadAllowed: boolean
  isCapped: boolean
}>
export type LetterChanges = EditedLetter

export type RetentionOptions = Readonly<{
  batchSize: number
  signal?: AbortSignal
  /** Told of each queue when it is done. */
  onDone?(done: RetentionDone): void
}>
export type RetentionDone = Readonly<{ queue: string; archived: number; purged: number }>

export interface Campaigns {
  /** The selection as a campaign would freeze it now, without changing anything. */
  preview(spec: CampaignSpec): Promise<CampaignPreview>
  /** Name and reason are required (`trace.reason`). Starts by itself. */
  create(spec: CampaignSpec, trace: Trace): Promise<Campaign>
  get(id: string): Promise<Campaign | null>
  list(query: Readonly<{ beforeId?: string; countMax: number }>): Promise<readonly Campaign[]>
  letters(
    id: string,
    query: Readonly<{ states?: readonly CampaignLetterState[]; afterPlace?: number; countMax: number }>,
  ): Promise<readonly CampaignLetter[]>
  /** Its speed and when it halts, from now on; its set and what happens to it stay. Refused once it has ended. */
  adjust(id: string, changes: CampaignChanges, trace: Trace): Promise<Campaign>
  /** Sends nothing until resumed; what is under way goes on. */
  pause(id: string, trace: Trace): Promise<Campaign>
  /** After a pause or a halt; `isCanaryPassed` is implied: a person looked. */
  resume(id: string, trace: Trace): Promise<Campaign>
  /** What is pending is skipped; what is under way goes on to its end. */
  cancel(id: string, trace: Trace): Promise<Campaign>
  /** Every change until it has ended, is gone or the signal aborts; the present state first. Goes on over a store that goes and comes back. */
  watch(id: string, signal: AbortSignal): AsyncIterable<Campaign>
}

export type CampaignSpec = Readonly<{
  name: string
  action: 'redrive' | 'discard'
  selection: Readonly<{ letterIds: readonly string[] } | { filter: LetterFilter }>
  /** Null: where each letter came from. */
  target: string | null
  isDeadAllowed: boolean
  /** Letters that are sent first; the rest waits until they ended well. 0: none. */
  canaryCount: number
  /** Letters per second at most; 0: as fast as it goes. */
  ratePerSecond: number
  /** The rate grows to that over this time; 0: at once. */
  rampUs: number
  /** Halts when, of at least `haltMin` that ended, more than this part (0 to 1) failed or are unknown. */
  haltRatio: number
  haltMin: number
}>

/** What a person may change of a campaign that goes on. */
export type CampaignChanges = Readonly<
  Partial<Pick<CampaignSpec, 'ratePerSecond' | 'rampUs' | 'haltRatio' | 'haltMin'>>
>

/**
 * freezing → canary → running → done; `paused` by a person, `halted` by itself, `cancelled` for good. A
 * campaign is `done` when every letter of its set has its end.
 */
export type CampaignState = 'freezing' | 'canary' | 'running' | 'paused' | 'halted' | 'cancelled' | 'done'
export type Campaign = Readonly<{
  id: string
  spec: CampaignSpec
  state: CampaignState
  /** Why it is paused, halted or cancelled; empty otherwise. */
  stateReason: string
  actor: string
  reason: string
  createdAt: Instant
  updatedAt: Instant
  startedAt: Instant | null
  endedAt: Instant | null
  /** Letters in the frozen set; null while it is being frozen. */
  size: number | null
  counts: CampaignCounts
  /** Sent per second over the last seconds. */
  rate: number
}>
export type CampaignPreview = Readonly<{
  /** Exact unless the selection has to be searched; then what was found in the time there was. */
  count: number
  isExact: boolean
  looked: number
  sample: readonly ListedLetter[]
  /** Where they would go, and how many of those seen. */
  targets: readonly Readonly<{ queue: string; count: number }>[]
  byState: Readonly<Record<string, number>>
  warnings: readonly string[]
}>
