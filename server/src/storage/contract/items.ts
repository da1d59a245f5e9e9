/**
 * Items: produce, lease, settle (complete, retry, extend), and everything that happens to an item when time
 * passes. A dead letter is an item too; the commands that only letters have are in letters.ts.
 */

import type { ItemId, LetterId, QueueName } from '../../core/ids/ids.ts'
import type { SettleRefusal } from '../../core/items/decide-settle.ts'
import type { Failure, Header, Item, Leased, ListedState, Origin } from '../../core/items/item.ts'
import type { ItemChange } from '../../core/items/plan-transition.ts'
import type { ClockStep, RetryRequest } from '../../core/items/transitions.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { AuditContext } from './audit.ts'

export type { SettleRefusal } from '../../core/items/decide-settle.ts'
export type { ListedState } from '../../core/items/item.ts'
export type { ItemChange } from '../../core/items/plan-transition.ts'

export type ItemCommand =
  | Produce
  | LeaseItems
  | Complete
  | Retry
  | Extend
  | Unlease
  | Advance
  | CorrectLeases
  | Import
  | Delete
  | Clear

export type ItemResults = {
  produce: ProduceResult
  lease: readonly Leased[]
  complete: SettleResult
  retry: SettleResult
  extend: SettleResult
  unlease: { unleased: number }
  advance: AdvanceResult
  'correct-leases': CorrectLeasesResult
  import: readonly ImportResult[]
  delete: RemoveResult
  clear: RemoveResult
}

export interface ItemStore {
  listItems(query: ItemsQuery): Promise<readonly Item[]>
  /** The next instant at which `advance` has something to do; null if there is none. */
  readNextDueAt(): Promise<Instant | null>
}

/** Stores the items in one partition, in the order given. */
export type Produce = Readonly<{
  op: 'produce'
  queue: QueueName
  partition: number
  items: readonly NewItem[]
  now: Instant
  /**
   * Idempotent produce. A command with the key and the items of an earlier one changes nothing until `until`
   * and has the result of the earlier one. With other items it is refused with IDEMPOTENCY_KEY_REUSED.
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
  /** Schedules the item: it is not available before this instant. */
  availableAt?: Instant | null
  /** Default: now + the queue's expire time. */
  expireDeadline?: Instant
  /**
   * Stores the item as leased, with its first attempt in progress. Saves a write when a leaser is waiting.
   */
  lease?: Readonly<{ holder: string }>
  /** The letter that this item is a redrive of. */
  letterId?: LetterId | null
  retryCount?: number
}>

export type ProduceResult = Readonly<{
  /** In the order of the command's items. */
  ids: readonly ItemId[]
  /** The partition that holds the items. For a repeat it is the partition of the first call. */
  partition: number
  /** The deadline of the items that were stored as leased. */
  deadline: Instant
  /** True: an earlier command with the same key produced the items. */
  isRepeat: boolean
}>

/**
 * Leases up to `holders.length` available items: highest priority first, then oldest. Item number i goes to
 * `holders[i]`, so one command serves many waiting leasers, and each item goes to exactly one of them.
 *
 * A lease adds 1 to the attempts; its deadline is now + the queue's lease time. The command never waits for
 * another caller. A paused queue gives no items. The result ends early once the payloads reach `stepBytesMax`
 * (shared/byte-budget.ts): the caller then asks again.
 */
export type LeaseItems = Readonly<{
  op: 'lease'
  queue: QueueName
  partition: number
  holders: readonly string[]
  now: Instant
}>

/**
 * Completes all of the ids, or none: if one id is refused, nothing is completed. Same for `Retry` and
 * `Extend`.
 */
export type Complete = Readonly<{
  op: 'complete'
  queue: QueueName
  partition: number
  ids: readonly ItemId[]
  now: Instant
}>

/**
 * Ends the lease of items whose attempt failed. The queue's policy decides whether they wait again or die.
 */
export type Retry = Readonly<{
  op: 'retry'
  queue: QueueName
  partition: number
  items: readonly Readonly<RetryRequest & { id: ItemId }>[]
  now: Instant
}>

/** Moves the deadline of leases. */
export type Extend = Readonly<{
  op: 'extend'
  queue: QueueName
  partition: number
  ids: readonly ItemId[]
  deadline: Instant
  now: Instant
}>

/**
 * Undoes leases whose items reached no worker: the items wait again with their old id and position, and the
 * attempt is not counted. Ids that are no longer leased are skipped.
 */
export type Unlease = Readonly<{
  op: 'unlease'
  queue: QueueName
  partition: number
  ids: readonly ItemId[]
  now: Instant
}>

export type SettleResult =
  | Readonly<{ isSettled: true; changes: readonly ItemChange[] }>
  | Readonly<{ isSettled: false; refused: readonly SettleRefusal[] }>

/**
 * Applies the passing of time: ends leases, expires items, promotes scheduled items, and removes done items
 * after their retention. An item is due when its `due_at` is not after now. At most `countMax` items change,
 * earliest first, then by id. Many servers can run it at once.
 */
export type Advance = Readonly<{ op: 'advance'; now: Instant; countMax: number }>
export type AdvanceResult = Readonly<{ changes: readonly ItemChange[]; isMore: boolean }>

/**
 * After the clock was set: corrects the deadlines of the leases from before (core/items/transitions.ts
 * `correctLease`). Otherwise they would last longer by as much as the clock was set back, or end earlier by
 * as much as it was set forward. Examines a limited number of leases, from the position `after` on. A
 * repeated correction for the same step changes nothing.
 */
export type CorrectLeases = Readonly<{
  op: 'correct-leases'
  step: ClockStep
  now: Instant
  after: LeasePosition | null
}>
/** Leases are ordered by deadline, then by the key of the store. */
export type LeasePosition = Readonly<{ deadline: Instant; key: string }>
/** `next`: where the next command continues; null after the last lease. */
export type CorrectLeasesResult = Readonly<{ corrected: number; next: LeasePosition | null }>

/**
 * Stores items as given, with a new id and creation time. An item whose source id is already in the queue is
 * skipped. A queue that has a dead queue refuses letters with DEAD_QUEUE_INVALID.
 */
export type Import = Readonly<{
  op: 'import'
  queue: QueueName
  partition: number
  items: readonly ItemToImport[]
  now: Instant
  /** Rejects the write with SOURCE_ID_EXISTS instead of skipping an item. */
  isNewOnly?: boolean
}>

export type ItemToImport = Readonly<
  Omit<NewItem, 'lease'> & {
    sourceId?: string | null
    attempts?: number
    lease?: Readonly<{ holder: string; deadline: Instant }> | null
    /** A lease deadline to show for an item that is not leased. */
    givenLeaseDeadline?: Instant
    /** An item with an origin is a dead letter. */
    origin?: Origin | null
    failure?: Failure | null
    /** The failures before `failure`, newest first. */
    history?: readonly Failure[]
    deadLetteredAt?: Instant | null
  }
>

export type ImportResult = Readonly<{
  /** Null: the item was skipped, because its source id is already in the queue. */
  id: ItemId | null
  /**
   * Set for each skipped item, also for a repeat within one command: the root id of the item with that source
   * id.
   */
  existingId?: LetterId
  createdAt: Instant
  expireDeadline: Instant
}>

/**
 * Deletes items in any state, lowest ids first, up to `stepBytesMax`; call again with the ids after `next`.
 * Unknown ids are skipped. Open letters are discarded instead (`decideRemoval` in
 * core/dead-letters/letter-decisions.ts), and discarded letters stay. Refused with LETTER_NOT_DISCARDABLE if
 * a redrive of a named letter is in progress.
 */
export type Delete = Readonly<{
  op: 'delete'
  queue: QueueName
  partition: number
  ids: readonly ItemId[]
  /** When letters are discarded. Default: the time of the store's clock. */
  now?: Instant
  /**
   * The audit row has up to 1,000 of the ids, and the numbers of deleted and discarded letters by state. Each
   * discarded letter has a row of its own.
   */
  audit?: AuditContext
}>

/** `next`: more may be left after the item with this id; null: nothing is left. */
export type RemoveResult = Readonly<{ removed: number; discarded: number; next: ItemId | null }>

/**
 * Deletes items of the given states, lowest ids first, at most `countMax` and up to `stepBytesMax`; call
 * again with `after` until `next` is null. Done and dead items stay. Open letters are discarded instead of
 * deleted, and letters whose redrive is in progress stay. Refused with QUEUE_HOLDS_LETTERS if it would
 * discard letters of a queue with the class `financial`.
 */
export type Clear = Readonly<{
  op: 'clear'
  queue: QueueName
  partition?: number
  isWaiting: boolean
  isScheduled: boolean
  isLeased: boolean
  countMax: number
  /** Only items with a higher id: `next` of the step before. */
  after?: ItemId
  /** Discard letters of every class. */
  isForced?: boolean
  /** When letters are discarded. Default: the time of the store's clock. */
  now?: Instant
  /**
   * The audit row has the number of deleted items, and of discarded letters by state. Each discarded letter
   * has a row of its own.
   */
  audit?: AuditContext
}>

/**
 * An order by a time that can be null (`deadLetteredAt`, `availableAt`) lists only the items that have one.
 * Items that are equal in the order are sorted by id in the same direction.
 */
export type ItemOrder = 'id' | 'createdAt' | 'updatedAt' | 'deadLetteredAt' | 'availableAt' | 'priority'

export type ItemsQuery = Readonly<{
  queue: QueueName
  partition?: number
  /** Default or empty: all states. */
  states?: readonly ListedState[]
  order?: ItemOrder
  isDescending?: boolean
  /** Where to start: the position of an item in the order. `isIncluded`: the list begins with that item. */
  from?: Readonly<{ value?: number; id: string; isIncluded: boolean }>
  /** Only these items; `countMax` still limits the result. */
  ids?: readonly ItemId[]
  /** Only the letters with these root ids. Finds only items that have a source id. */
  rootIds?: readonly LetterId[]
  countMax: number
  /**
   * The list ends with the item that reaches this number of bytes (payload and texts), and the store reads no
   * further payloads. The caller continues behind that item. Default: only `countMax` limits the list.
   */
  bytesMax?: number
  /** False: payload, key and headers are not read, and are empty in the result. Default true. */
  hasBytes?: boolean
}>
