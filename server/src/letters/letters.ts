/**
 * Everything that people and programs can do with dead letters. The HTTP edges, the command line and the
 * background passes use these functions; none of them accesses letters in the store directly.
 */
import type { GroupingRule } from '../core/grouping/rules.ts'
import type { CampaignId, GroupId, LetterId, QueueName } from '../core/ids/ids.ts'
import type { Failure, Header, Item, Origin } from '../core/items/item.ts'
import type { Instant } from '../core/time/instant.ts'
import type { Attribution } from '../engine/engine.ts'
import type { AuditRow } from '../storage/contract/audit.ts'
import type { CampaignCounts, CampaignLetter, CampaignLetterState } from '../storage/contract/campaigns.ts'
import type { CausesQuery } from '../storage/contract/groups.ts'
import type {
  CancelRedriveResult,
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
  ListedArchived,
  ListedLetter,
  RedriveResult,
  RestoreResult,
} from '../storage/contract/letters.ts'
import type { CauseFacts, CausesPage } from './grouping/causes.ts'
import type { GroupDecision, PinnedSubject } from './grouping/group-actions.ts'
import type { GroupJobs } from './grouping/group-jobs.ts'
import type { RulesPreview } from './grouping/preview-rules.ts'
import type { LetterLabel } from './labels.ts'

export interface Letters {
  /**
   * Stores letters that died outside Redrive. If the dead queue already has a letter with the same source id
   * (also a discarded one), the result names that letter. Writes up to 1,000 letters per transaction: after a
   * failure, repeat the whole call.
   */
  capture(
    queue: QueueName,
    letters: readonly CapturedLetter[],
    attribution?: Attribution,
  ): Promise<readonly Captured[]>

  /** Finds a live or archived letter by its root id or UUID, or by another id that it had; else null. */
  find(id: string): Promise<LetterDetail | null>
  /** Maps root ids and UUIDs to root ids; null for an invalid id or an unknown letter. */
  resolveIds(ids: readonly string[]): Promise<readonly (LetterId | null)[]>
  /** Returns those of these letters that are open: PENDING or DEAD. */
  selectOpen(letterIds: readonly LetterId[]): Promise<readonly LetterId[]>
  /** Returns when the page is full, all letters were examined, or the time is used up; `next` continues. */
  list(query: LetterSearch): Promise<LetterSearchPage>
  /** Reads all letters that match in batches of `countMax`, each a search of its own. */
  readAll(query: LetterSearch): AsyncGenerator<LetterBatch>
  count(query: LetterCountsQuery): Promise<readonly LetterCount[]>
  countOpenSince(since: Instant): Promise<number>
  listGroups(query: GroupsQuery): Promise<readonly GroupFacts[]>
  /** Returns a function that gives the label of each of these letters. */
  labels(letters: readonly Item[]): Promise<(letter: Item) => LetterLabel>
  /** Causes with a matching letter, those with the most letters first. */
  causes(query: CausesQuery): Promise<CausesPage>
  /** The cause with this key, or into which this key was merged; null: it does not exist. */
  findCause(causeKey: string, filter: CountedFilter): Promise<CauseFacts | null>
  /**
   * False if the counts cannot answer exactly: above 10,000 groups, new letters are not counted by error
   * class.
   */
  areCountsExact(filter: CountedFilter, by?: readonly CountedBy[]): Promise<boolean>
  groupArrivals(groupIds: readonly GroupId[], since: Instant): Promise<readonly GroupArrivals[]>
  /**
   * Merges groups of one dead queue into one of them, at once for all their letters. Requests with the ids of
   * merged groups mean the group that they are part of.
   */
  mergeGroups(into: GroupId, groupIds: readonly GroupId[], attribution: Attribution): Promise<GroupId>
  /** Merges causes over all dead queues; the groups of each queue stay apart. Returns the key. */
  mergeCauses(into: string, causeKeys: readonly string[], attribution: Attribution): Promise<string>
  /** Shows a group, or all groups of a cause, with this title; null: with the learned one. */
  pinTitle(subject: PinnedSubject, title: string | null, attribution: Attribution): Promise<void>
  /** Acknowledges, mutes, resolves or reopens a group. Returns the group that is shown. */
  decideGroup(groupId: GroupId, decision: GroupDecision, attribution: Attribution): Promise<GroupId>
  /** Background work on groups: regrouping a dead queue, and splits. */
  readonly groupJobs: GroupJobs
  /** Shows the effect of rules on the newest letters of a dead queue, without changing anything. */
  previewRules(queue: QueueName, rules: readonly GroupingRule[], lettersMax: number): Promise<RulesPreview>
  /** Most recently archived first. Returns under the same conditions as `list`. */
  listArchived(query: ArchiveSearch): Promise<ArchivePage>

  /**
   * Partial success: returns a reason for each letter that was not sent. Each sent letter gets an audit row.
   */
  redrive(
    letterIds: readonly LetterId[],
    how: RedriveHow,
    attribution: Attribution,
  ): Promise<readonly RedriveResult[]>
  /** Stores an edited version and returns its number; `redrive` with that number sends it. */
  edit(letterId: LetterId, changes: LetterChanges, attribution: Attribution): Promise<number>
  discard(letterIds: readonly LetterId[], attribution: Attribution): Promise<readonly DiscardResult[]>
  /** Restores discarded and archived letters; with a campaign, only letters that it discarded. */
  restore(
    letterIds: readonly LetterId[],
    attribution: Attribution,
    campaignId?: CampaignId,
  ): Promise<readonly RestoreResult[]>
  /** Restores all discarded letters of a selection. A repeated call continues. */
  restoreSelected(selection: UndoSelection, limits: UndoLimits, attribution: Attribution): Promise<UndoDone>
  /** Cancels the redrives of all letters of a campaign whose items no worker has leased. */
  cancelCampaignRedrives(
    campaignId: CampaignId,
    limits: UndoLimits,
    attribution: Attribution,
  ): Promise<UndoDone>
  /** Cancels redrives whose items no worker has leased. Returns a reason for each other letter. */
  cancelRedrives(
    letterIds: readonly LetterId[],
    attribution: Attribution,
  ): Promise<readonly CancelRedriveResult[]>

  readonly campaigns: Campaigns

  /** The letters and campaigns of these namespaces: all others do not exist for the caller. */
  within(namespaces: readonly string[]): Letters
  /** The letters without the content that may be read in other namespaces only. */
  readableIn(namespaces: readonly string[]): Letters

  /**
   * Background passes. Each does the work that is due now and returns true if more is left. Tests call them.
   */
  readonly passes: Readonly<{
    /** Automatic redrives. `isFresh`: read the policies again instead of using the cached ones. */
    auto(options?: Readonly<{ isFresh?: boolean }>): Promise<boolean>
    /** One step of every active campaign. */
    campaigns(): Promise<boolean>
    /** One step of every group job. */
    groups(): Promise<boolean>
    /** Archives and purges by the retention policy, one batch per queue. */
    retention(): Promise<boolean>
  }>
  /** Applies the retention policy completely, now; returns the result per queue. */
  runRetention(options: RetentionOptions): Promise<readonly RetentionDone[]>
  /** Counts what `runRetention` would do, without doing it. */
  previewRetention(): Promise<readonly RetentionDone[]>

  close(): Promise<void>
}

export type CapturedLetter = Readonly<{
  /** Unique in the dead queue. Null: always stored as a new letter. */
  sourceId: string | null
  origin: Origin
  payload: Uint8Array
  key: Uint8Array | null
  headers: readonly Header[]
  failure: Failure
  /** Earlier failures, newest first. */
  history: readonly Failure[]
  deadLetteredAt?: Instant
}>
/** `isNew` is false if the letter was stored before, as `letterId`. */
export type Captured = Readonly<{ letterId: LetterId; isNew: boolean }>

export type LetterDetail = Readonly<{
  item: Item
  archivedAt: Instant | null
  edits: readonly LetterEdit[]
  /** Newest first: actions on the letter, and on the campaigns that it was part of. */
  audit: readonly AuditRow[]
}>

export type LetterSearch = Readonly<{
  filter: LetterFilter
  order: LetterOrder
  isDescending: boolean
  after?: LetterCursor
  countMax: number
  /** With `all`, a page can have fewer letters than requested and a `next`, because letters can be large. */
  bytes: LetterBytes
  /** Maximum search time; default 1 s. */
  msMax?: number
}>
export type LetterSearchPage = Readonly<{
  letters: readonly ListedLetter[]
  /** Number of letters that were examined. */
  examinedCount: number
  /** Where to continue; null if there is nothing more. */
  next: LetterCursor | null
  /** Number of all matching letters, or null if the counts cannot answer it and only a search could. */
  total: number | null
}>
export type LetterBatch = Omit<LetterSearchPage, 'total'>
/** `msMax`: maximum search time; default 1 s. */
export type ArchiveSearch = Pick<LetterSearch, 'filter' | 'after' | 'countMax' | 'msMax'>
export type ArchivePage = Readonly<{
  letters: readonly ListedArchived[]
  /** Number of archived items that were examined. */
  examinedCount: number
  /** Where to continue; null if there is nothing more. */
  next: LetterCursor | null
}>

export type RedriveHow = Readonly<{
  /** A queue; null: the queue that each letter came from. */
  target: QueueName | null
  /**
   * The number of a stored edited version, or a new version, which is stored only if the letter is sent.
   * Null: the unedited letter.
   */
  edit: number | LetterChanges | null
  isDeadAllowed: boolean
  isCapped: boolean
  /** Send letters to queues of these namespaces only. Default: to every queue. */
  targetNamespaces?: readonly string[]
}>
export type LetterChanges = EditedLetter

/** Discarded letters: those that match a filter and are not archived, or all that a campaign discarded. */
export type UndoSelection = Readonly<{ filter: LetterFilter } | { campaignId: CampaignId }>
export type UndoLimits = Readonly<{
  countMax: number
  /** Rejects with SELECTION_CHANGED, and changes nothing, if another number of letters is selected. */
  expectedCount: number | null
  /** No further letters are changed after this time. */
  msMax: number
}>
export type UndoDone = Readonly<{
  changed: number
  refused: number
  /** The first letters that were refused. */
  refusals: readonly Readonly<{ letterId: LetterId; refusal: string }>[]
  /** False: the time was used up; a repeated call continues. */
  isComplete: boolean
}>

export type RetentionOptions = Readonly<{
  batchSize: number
  signal?: AbortSignal
  /** Called for each queue when it is finished. */
  onDone?(done: RetentionDone): void
}>
export type RetentionDone = Readonly<{ queue: QueueName; archived: number; purged: number }>

export interface Campaigns {
  /** The selection as a campaign would freeze it now, without changing anything. */
  preview(spec: CampaignSpec, options?: PreviewOptions): Promise<CampaignPreview>
  /** Requires a name and a reason (`attribution.reason`). The campaign starts automatically. */
  create(spec: CampaignSpec, attribution: Attribution): Promise<Campaign>
  get(id: CampaignId): Promise<Campaign | null>
  /** The causes of its failed letters, with the most letters first. */
  readCauses(campaign: Campaign): Promise<CampaignCauses>
  list(query: Readonly<{ beforeId?: CampaignId; countMax: number }>): Promise<readonly Campaign[]>
  listLetters(
    id: CampaignId,
    query: Readonly<{ states?: readonly CampaignLetterState[]; afterPosition?: number; countMax: number }>,
  ): Promise<readonly CampaignLetter[]>
  /** Changes the speed and the halt conditions from now on. Rejects if the campaign has ended. */
  adjust(id: CampaignId, changes: CampaignChanges, attribution: Attribution): Promise<Campaign>
  /** Sends nothing until resumed. Redrives in progress continue. */
  pause(id: CampaignId, attribution: Attribution): Promise<Campaign>
  /**
   * Continues after a pause or a halt. Skips the rest of the canary phase, because a person has checked it.
   */
  resume(id: CampaignId, attribution: Attribution): Promise<Campaign>
  /** Skips pending letters. Redrives in progress continue to their outcome. */
  cancel(id: CampaignId, attribution: Attribution): Promise<Campaign>
  /**
   * Yields the current state, then every change until the campaign ends or is deleted, or the signal aborts.
   * Keeps polling while the store is down.
   */
  watch(id: CampaignId, signal: AbortSignal): AsyncIterable<Campaign>
}

export type CampaignSpec = Readonly<{
  name: string
  action: 'redrive' | 'discard'
  selection: Readonly<{ letterIds: readonly LetterId[] } | { filter: LetterFilter }>
  /** Null: the queue that each letter came from. */
  target: QueueName | null
  /** Send letters to queues of these namespaces only. Default: to every queue. */
  targetNamespaces?: readonly string[]
  isDeadAllowed: boolean
  /** Number of letters to send first; the rest wait until these are resolved. 0: no canary. */
  canaryCount: number
  /** Maximum letters per second; 0: unlimited. */
  ratePerSecond: number
  /** Time in which the rate rises to `ratePerSecond`; 0: full rate immediately. */
  rampUs: number
  /** Halts if at least `haltMin` letters ended and more than this share (0 to 1) failed or are unknown. */
  haltRatio: number
  haltMin: number
  /** Take only this number of letters, in the order of the selection; null: all of them. */
  limit: number | null
  /**
   * The number of letters that the caller expects, after `limit` is applied; null: any. If the selection has
   * another number, the campaign is refused; if only the frozen set has another number, it halts before the
   * first letter.
   */
  expectedCount: number | null
}>

/** `examinedCount`: the number of failed letters that were counted, at most 1,000. */
export type CampaignCauses = Readonly<{
  causes: readonly Readonly<{
    groupId: GroupId
    title: string
    errorCode: string
    errorClass: string
    /** The message of one of the letters. */
    message: string
    sampleId: LetterId
    count: number
  }>[]
  examinedCount: number
}>

/** Properties that an operator can change while the campaign is active. */
export type CampaignChanges = Readonly<
  Partial<Pick<CampaignSpec, 'ratePerSecond' | 'rampUs' | 'haltRatio' | 'haltMin'>>
>

/**
 * freezing → canary → running → done. A person can pause or cancel it; `halted` is automatic. A campaign is
 * `done` when every letter of its set has an outcome.
 */
export type CampaignState = 'freezing' | 'canary' | 'running' | 'paused' | 'halted' | 'cancelled' | 'done'
export type Campaign = Readonly<{
  id: CampaignId
  /** The namespace of its letters; empty: they are in several namespaces. */
  namespace: string
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
  /** Letters sent per second, measured over the last seconds. */
  rate: number
  /** Describes why the campaign waits for workers; empty if it does not. */
  waitsFor: string
}>
/** `isCountedExactly`: search until all letters are counted or `signal` aborts, without a time limit. */
export type PreviewOptions = Readonly<{ isCountedExactly?: boolean; signal?: AbortSignal }>
export type CampaignPreview = Readonly<{
  /** Exact, unless the selection requires a search: then the number found within the time limit. */
  count: number
  isExact: boolean
  examinedCount: number
  sample: readonly ListedLetter[]
  /** Target queues, with the number of examined letters for each. */
  targets: readonly Readonly<{ queue: QueueName; count: number }>[]
  byState: Readonly<Record<string, number>>
  warnings: readonly string[]
}>
