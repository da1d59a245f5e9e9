/**
 * The contract of a store. Two backends keep it, held equal by one conformance suite.
 *
 * All changes are **commands**, given as a list and written in one transaction: durable when the
 * promise resolves, all undone when it rejects. Commands of one kind that stand next to each other
 * are written as one batch, so 256 callers cost one statement, not 256. A single call is a list of one.
 *
 * A command that cannot be obeyed at all (unknown queue, lost lock) rejects the whole write with a
 * KnownError. `complete`, `retry` and `extend` may instead be refused one by one: their result says
 * so, they changed nothing, and the other commands of the list stand.
 *
 * What each item becomes is decided by core/transitions.ts, called inside the transaction. Every
 * count is changed in the transaction of the rows that it counts.
 */
import type { Instant } from '../../core/instant.ts'
import type { Failure, Header, Item, Leased, Origin, Outcome, State } from '../../core/item.ts'
import type { EndedState } from '../../core/letter-class.ts'
import type { NewQueue, PolicyChanges, Queue } from '../../core/queue.ts'
import type { RetryRequest, TransitionCause } from '../../core/transitions.ts'
import type { CampaignCommand, CampaignResults, CampaignStore } from './campaigns.ts'
import type { Difference } from './difference.ts'
import type { LetterCommand, LetterResults, LetterStore } from './letters.ts'

export interface Storage extends LetterStore, CampaignStore {
  readonly kind: 'sqlite' | 'postgres'

  write<const C extends readonly Command[]>(commands: C): Promise<ResultsOf<C>>

  getQueue(name: string): Promise<Queue | null>
  /** In byte order of name, from `from` (included) on. */
  listQueues(query: QueuesQuery): Promise<readonly Queue[]>
  /** Exact, per partition. Costs the number of partitions, whatever they hold. */
  counts(query: CountsQuery): Promise<readonly PartitionCounts[]>
  listItems(query: ItemsQuery): Promise<readonly Item[]>
  listArchive(query: ItemsQuery): Promise<readonly Archived[]>
  /** Newest first. */
  listAudit(query: AuditQuery): Promise<readonly AuditRow[]>
  /** When `advance` will next have something to do; null for never. */
  nextDueAt(): Promise<Instant | null>

  /**
   * Compares every count with the rows it counts, and checks conservation. Empty when all is well. Of arrivals per hour
   * only that they are enough for the letters that are kept: others came too, and are gone or failed anew.
   */
  verify(): Promise<readonly Difference[]>
  /**
   * `verify`, then sets the counts right. What it returns is drift, and a defect to be found. With a
   * lock that is no longer held it rejects with LOCK_LOST instead of mending anything. Arrivals it neither compares nor
   * mends: no row tells which of them are missing.
   */
  reconcile(lock?: HeldLock): Promise<readonly Difference[]>

  /** Tells the other servers on this store that items of these queues became available. May be lost. */
  announce(queues: readonly string[]): Promise<void>
  /** Hears what the other servers announce, never oneself. Gives a way to stop. */
  onAnnounced(listener: (queues: readonly string[]) => void): () => void

  /** Resolves when the store answers; rejects with STORE_UNAVAILABLE and the reason. */
  ping(): Promise<void>
  /** Waits for writes under way. Safe twice. */
  close(): Promise<void>
}

export type Command =
  | CreateQueue
  | UpdateQueue
  | DeleteQueue
  | Produce
  | LeaseItems
  | Complete
  | Retry
  | Extend
  | Unlease
  | Advance
  | Import
  | Delete
  | Clear
  | Archive
  | WriteAudit
  | AcquireLock
  | RenewLock
  | ReleaseLock
  | Fence
  | LetterCommand
  | CampaignCommand

export type Results = {
  'create-queue': Queue
  'update-queue': Queue
  'delete-queue': { removed: number }
  produce: Produced
  lease: readonly Leased[]
  complete: Settled
  retry: Settled
  extend: Settled
  unlease: { unleased: number }
  advance: Advanced
  import: readonly Imported[]
  delete: { removed: number }
  clear: { removed: number; isMore: boolean }
  archive: { archived: number; isMore: boolean }
  audit: undefined
  'acquire-lock': HeldLock | null
  'renew-lock': boolean
  'release-lock': boolean
  fence: undefined
} & LetterResults &
  CampaignResults

export type ResultOf<C extends Command> = Results[C['op']]
export type ResultsOf<C extends readonly Command[]> = { -readonly [K in keyof C]: ResultOf<C[K]> }

/** Refused with QUEUE_EXISTS, or DEAD_QUEUE_INVALID when the dead queue is missing, itself, or has its own. */
export type CreateQueue = Readonly<{ op: 'create-queue'; queue: NewQueue; now: Instant }>
/** Refused with QUEUE_NOT_FOUND, or DEAD_QUEUE_INVALID (also when this queue is itself a dead queue of another). */
export type UpdateQueue = Readonly<{
  op: 'update-queue'
  name: string
  changes: PolicyChanges
  now: Instant
}>
/**
 * With all its items, counts and archived items. Refused with QUEUE_IN_USE while another queue names it as its dead queue,
 * and with QUEUE_HOLDS_LETTERS while it has open letters (waiting, under way, DEAD) and is of class `financial`.
 */
export type DeleteQueue = Readonly<{
  op: 'delete-queue'
  name: string
  /** Whatever letters it has. */
  isForced?: boolean
  /** Its row says how many letters went with it, by state. */
  trace?: ActTrace
}>

/** All items go, in order, to one partition. */
export type Produce = Readonly<{
  op: 'produce'
  queue: string
  partition: number
  items: readonly NewItem[]
  now: Instant
  /**
   * Produce once: a command with the key and the items of an earlier one, up to `until`, changes nothing and is
   * answered like that one. With other items it is refused with IDEMPOTENCY_KEY_REUSED.
   */
  once?: Readonly<{ key: string; until: Instant }>
}>
export type NewItem = Readonly<{
  payload: Uint8Array
  kind?: string
  encoding?: string
  reference?: string
  key?: Uint8Array | null
  headers?: readonly Header[]
  priority?: number
  attemptsMax?: number
  /** Scheduled: not available before then. */
  availableAt?: Instant | null
  /** Default: now + the queue's expire time. */
  expireDeadline?: Instant
  /** Stored as already leased, its first attempt under way: one write less where a leaser waits. */
  lease?: Readonly<{ holder: string }>
  letterId?: string | null
  redrives?: number
}>
/**
 * In the order of the request. `deadline` is that of the items stored as leased. `isRepeat`: they were
 * produced before, with the same key; `partition` is where.
 */
export type Produced = Readonly<{
  ids: readonly string[]
  partition: number
  deadline: Instant
  isRepeat: boolean
}>

/**
 * Hands each available item to exactly one caller: highest priority first, then oldest. Item number i
 * goes to `holders[i]`, so many waiting leasers are served by one command. Adds 1 to attempts; the
 * deadline is now + the queue's lease time. Never waits for another caller. A paused queue gives nothing. May give fewer than
 * there are once their payloads reach `stepBytesMax` together: whoever got that much asks again.
 */
export type LeaseItems = Readonly<{
  op: 'lease'
  queue: string
  partition: number
  holders: readonly string[]
  now: Instant
}>

/** All of its ids, or none: when one is refused nothing is completed. The same for `retry` and `extend`. */
export type Complete = Readonly<{
  op: 'complete'
  queue: string
  partition: number
  ids: readonly string[]
  now: Instant
}>
export type Retry = Readonly<{
  op: 'retry'
  queue: string
  partition: number
  items: readonly Readonly<RetryRequest & { id: string }>[]
  now: Instant
}>
export type Extend = Readonly<{
  op: 'extend'
  queue: string
  partition: number
  ids: readonly string[]
  deadline: Instant
  now: Instant
}>
/**
 * Takes leases back that nobody got: the items wait at their old place under their old id, the attempt
 * is not counted. Ids that are not leased any more are passed over.
 */
export type Unlease = Readonly<{
  op: 'unlease'
  queue: string
  partition: number
  ids: readonly string[]
  now: Instant
}>
export type Settled =
  | Readonly<{ isSettled: true; changes: readonly Change[] }>
  | Readonly<{ isSettled: false; refused: readonly Refusal[] }>
/** `missing` includes scheduled, done, dead and discarded items, and letters whose redrive is under way: none of them can be settled. A repeated id is `missing` the second time. */
export type Refusal = Readonly<{ id: string; why: 'missing' | 'not-leased' }>

/**
 * Lets time pass: ends leases, expires, promotes scheduled items, removes done items whose time is
 * over. An item is due when `dueAt <= now`; earliest first, then by id, at most `countMax`. Safe to run
 * on many servers at once.
 */
export type Advance = Readonly<{ op: 'advance'; now: Instant; countMax: number }>
export type Advanced = Readonly<{ changes: readonly Change[]; isMore: boolean }>

/** What happened to one item. `queue` and `partition` are where it is now; `null` id: it is gone. */
export type Change = Readonly<{
  fromId: string
  fromQueue: string
  fromPartition: number
  to: 'waiting' | 'scheduled' | 'leased' | 'done' | 'dead' | 'moved' | 'returned' | 'removed'
  because: TransitionCause | 'extend'
  id: string | null
  queue: string
  partition: number
  failure: Failure | null
  /** It was a redrive that its letter waited for: how that ended. */
  outcome?: Outcome
}>

/**
 * Stored as given, with a new id and creation time. An item whose source id is in the queue already is skipped. Letters are
 * refused with DEAD_QUEUE_INVALID by a queue that has a dead queue of its own.
 */
export type Import = Readonly<{
  op: 'import'
  queue: string
  partition: number
  items: readonly ImportedItem[]
  now: Instant
}>
export type ImportedItem = Readonly<
  Omit<NewItem, 'lease'> & {
    sourceId?: string | null
    attempts?: number
    lease?: Readonly<{ holder: string; deadline: Instant }> | null
    /** Kept for whoever looks at an item that is not leased. */
    givenLeaseDeadline?: Instant
    /** Makes it a dead letter. */
    origin?: Origin | null
    failure?: Failure | null
    /** Failures before that one, newest first. */
    history?: readonly Failure[]
    diedAt?: Instant | null
  }
>
/** `id`: null when it was skipped; then `thereId` is the root id of the item that has its source id already. */
export type Imported = Readonly<{
  id: string | null
  /** Both backends set it on what was skipped, also for a repeat within the command. letters/capture.ts answers with it. */
  thereId?: string
  createdAt: Instant
  expireDeadline: Instant
}>

/** Whatever their state; unknown ids are fine. */
export type Delete = Readonly<{
  op: 'delete'
  queue: string
  partition: number
  ids: readonly string[]
  /** Its row names those that were there, 1,000 at most, and says how many of them were letters, by state. */
  trace?: ActTrace
}>
/**
 * At most `countMax`, lowest ids first, and ends at `stepBytesMax`; call again while `isMore`. Done and dead items stay. Refused with
 * QUEUE_HOLDS_LETTERS where letters would go of a queue of class `financial`.
 */
export type Clear = Readonly<{
  op: 'clear'
  queue: string
  partition?: number
  isWaiting: boolean
  isScheduled: boolean
  isLeased: boolean
  countMax: number
  /** Letters, too, whatever the class. */
  isForced?: boolean
  /** Its row says how many were removed, and how many of them were letters, by state. */
  trace?: ActTrace
}>

/**
 * Moves items that ended before `endedBefore` to the archive, oldest first: exactly the rows that are
 * deleted are the ones that are inserted. Items that somebody holds stay for the next run. Ends with the item whose payload
 * reaches `stepBytesMax`, at `countMax` at the latest. `isMore`: it ended at one of these, so that there may be more of them.
 */
export type Archive = Readonly<{
  op: 'archive'
  queue: string
  /**
   * Which of them; by default all: done, dead and discarded. `by-class`: those that leave by themselves, by the class that
   * the queue has when they go. Once a change of the class is answered nothing goes by the one before; the audit
   * row says which states went.
   */
  states?: readonly EndedState[] | 'by-class'
  endedBefore: Instant
  countMax: number
  now: Instant
  trace?: ActTrace
}>

export type WriteAudit = Readonly<{ op: 'audit'; entries: readonly AuditEntry[] }>
export type AuditEntry = Readonly<{
  at: Instant
  actor: string
  action: string
  /** What it was done to: a queue, an item, a campaign… */
  target: string
  reason: string
  requestId: string
  details: Readonly<Record<string, unknown>>
}>
export type AuditRow = AuditEntry & Readonly<{ id: number }>
/**
 * Who asked for a command, for its audit rows. The store writes them in the transaction of the command, from what
 * really happened: one for each letter that changed, or one for the queue with how many. What changed nothing
 * leaves none.
 */
export type ActTrace = Readonly<
  Omit<AuditEntry, 'target'> & {
    /** Besides the rows of the letters: one for all of them, with how many. */
    sum?: Pick<AuditEntry, 'action' | 'target'>
  }
>

/**
 * Cluster-wide locks, fenced: each new holder gets a larger token, and `fence` in a write rejects the
 * whole write with LOCK_LOST unless the token is still the newest. Safety never depends on clocks: a
 * lock past its deadline (`deadline <= now`) may be taken over, and until somebody does its holder may
 * still act. An owner that acquires its own lock again gets a new token; the old one is lost.
 */
export type AcquireLock = Readonly<{
  op: 'acquire-lock'
  name: string
  owner: string
  now: Instant
  deadline: Instant
}>
export type HeldLock = Readonly<{ name: string; token: number }>
/** False: it was lost. */
export type RenewLock = Readonly<{ op: 'renew-lock'; lock: HeldLock; deadline: Instant }>
export type ReleaseLock = Readonly<{ op: 'release-lock'; lock: HeldLock }>
export type Fence = Readonly<{ op: 'fence'; lock: HeldLock }>

export type QueuesQuery = Readonly<{ from?: string; namespace?: string; countMax: number }>
export type CountsQuery = Readonly<{ queue?: string }>

/**
 * Gauges are rows that are there now, in the queue or in its archive; totals only grow. Conservation:
 * accepted = waiting + scheduled + leased + done + dead + discarded + archived + completed + deadLettered + dropped
 *   + deleted + forgotten + purged
 */
export type Counts = Readonly<{
  waiting: number
  scheduled: number
  leased: number
  done: number
  dead: number
  /** Letters that a person gave up, kept as tombstones. */
  discarded: number
  /** Produced, imported, or arrived as a dead letter. */
  accepted: number
  completed: number
  /** Moved to the dead queue, or back to the letter that they were a redrive of. */
  deadLettered: number
  /** Died with no dead queue to go to. */
  dropped: number
  /** Deleted or cleared by somebody. */
  deleted: number
  /** Kept as done until its time was over. */
  forgotten: number
  /** In the archive now: a gauge. */
  archived: number
  /** Removed from the archive when its time there was over. */
  purged: number
}>
export type PartitionCounts = Readonly<
  Counts & {
    queue: string
    partition: number
    /** Mean creation time of the items waiting or leased, to the millisecond; null when there are none. */
    createdAtMean: Instant | null
    leaseDeadlineMean: Instant | null
  }
>

/** `scheduled` is waiting with an `availableAt`; `waiting` here is without. */
export type ListedState = State | 'scheduled'
/** Nullable times (`diedAt`, `availableAt`) list only the items that have one. Ties by id, same direction. */
export type ItemOrder = 'id' | 'createdAt' | 'updatedAt' | 'diedAt' | 'availableAt' | 'priority'
export type ItemsQuery = Readonly<{
  queue: string
  partition?: number
  /** Empty: all. */
  states?: readonly ListedState[]
  order?: ItemOrder
  isDescending?: boolean
  /** Start here. A cursor is the place of an item in the order; `isIncluded` for a pivot. */
  from?: Readonly<{ value?: number; id: string; isIncluded: boolean }>
  /** Only these; `countMax` still bounds. */
  ids?: readonly string[]
  /** Letters, by what they are known by: only items that have a source id are looked up so. */
  rootIds?: readonly string[]
  countMax: number
}>
export type Archived = Readonly<{ item: Item; archivedAt: Instant }>
export type AuditQuery = Readonly<{ beforeId?: number; target?: string; action?: string; countMax: number }>
