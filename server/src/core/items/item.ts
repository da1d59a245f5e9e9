/**
 * An item: one unit of work in a queue. Each state is its own type, so a waiting item with a lease cannot be
 * expressed.
 *
 * An item consists of its head and its bytes. Every rule decides by the head, and no change of state touches
 * the bytes. A row that is read without its bytes is an `ItemHead`, which cannot be written as a whole item.
 */
import type { CampaignId, GroupId, ItemId, LetterId, QueueName } from '../ids/ids.ts'
import type { Instant } from '../time/instant.ts'

/** Name and value as received; the value may be absent. Order and repeated names are kept. */
export type Header = readonly [name: string, value: Uint8Array | null]

/** Why an item failed: the counts and times cover all attempts, the rest is from the last one. */
export type Failure = Readonly<{
  /** A short code that is matched exactly, e.g. `attempts`, `expired`, `http_503`. */
  errorCode: string
  errorClass: string
  message: string
  stack: string
  attempts: number
  firstFailedAt: Instant
  lastFailedAt: Instant
  worker: string
  /** The name that the worker gave to the cause. It decides the group instead of the error itself. */
  fingerprint?: string
  /** The id that the item had when it failed. Set when the item goes to the tail and gets another id. */
  itemId?: ItemId
}>

/** Where a dead letter came from, and so where a redrive sends it. */
export type Origin = Readonly<{
  kind: 'queue' | 'webhook' | 'kafka' | 'http'
  /** The queue, the topic, or the channel and consumer. */
  name: string
  partition: number | null
  /** The id at the origin: of the item, of the job, or the offset. */
  id: string
  group: string | null
  cluster: string | null
  createdAt: Instant
}>

/** The fields that an item has in every state, without its bytes. */
export interface ItemHeadBase {
  /** Changes when the item goes back to the tail: the order of ids is the order of the queue. */
  id: ItemId
  /** The id that the item was accepted with. It never changes, so a letter is identified by it. */
  rootId: LetterId
  queue: QueueName
  partition: number
  /** The id of the item at its source, unique in its queue; null if the item was produced here. */
  sourceId: string | null
  /** Counted on lease, not on failure: a crashed worker reports nothing. */
  attempts: number
  /** 0: the queue's policy decides. */
  attemptsMax: number
  /** Items with a higher priority are leased first. */
  priority: number
  kind: string
  encoding: string
  reference: string
  createdAt: Instant
  updatedAt: Instant
  expireDeadline: Instant
  failure: Failure | null
  /** Set only for an item that arrived as a dead letter. */
  origin: Origin | null
  /** When the item arrived as a dead letter, or when it died in its own queue. */
  deadLetteredAt: Instant | null
  /** The root id of the letter that this item is a redrive of. */
  letterId: LetterId | null
  /**
   * For a letter: the number of redrives that ended without success, over its whole life (retry_count). For a
   * redrive of a letter: its ordinal, starting at 1.
   */
  retryCount: number
  /** The failures before `failure`, newest first; at most `historyMax`. */
  history: readonly Failure[]
  /** The group of the failure. Set by the store, only for letters. */
  groupId: GroupId | null
  /** Only for letters, see core/dead-letters/letter.ts. */
  letter: LetterFacts | null
}

/** Kept byte for byte. Changes of state never touch them. */
export interface ItemBytes {
  key: Uint8Array | null
  headers: readonly Header[]
  payload: Uint8Array
}

/** An item keeps at most this number of earlier failures. */
export const historyMax = 100
/** The largest payload that the API accepts for one item. */
export const payloadBytesMax = 16 * 2 ** 20
/** The largest key and headers that the API accepts for one item, together. */
export const metadataBytesMax = 2 ** 20

/** The bytes of a key and of the names and values of headers. */
export function measureMetadata(key: Uint8Array | null, headers: readonly Header[]): number {
  return headers.reduce(
    (sum, [name, value]) => sum + name.length + (value?.byteLength ?? 0),
    key?.byteLength ?? 0,
  )
}

export type LetterFacts = Readonly<{
  /** The number of redrives that were started, by a person or by the policy, with any outcome. */
  requeueCount: number
  lastRedriveAt: Instant | null
  /** Newest first, at most `redrivesKept`. The first has no outcome while it is in progress. */
  redrives: readonly RedriveRecord[]
  /** When the policy redrives the letter; null: only a person does. */
  nextRedriveAt: Instant | null
  /** Why a person discarded the letter; empty unless it is discarded. */
  discardReason: string
  /** The campaign that discarded the letter, if one did. */
  discardCampaign?: CampaignId
  /** When the letter was restored after it was discarded or archived; undefined: it never was. */
  restoredAt?: Instant
  /**
   * The letter was DEAD before it was discarded, or before the redrive in progress; undefined: it was not.
   */
  wasDead?: true
}>

/**
 * The end of a redrive. `unknown`: it cannot be found out whether the item was processed. `cancelled`: the
 * item was removed before a worker leased it.
 */
export type Outcome = 'resolved' | 'failed' | 'unknown' | 'cancelled'
/** The outcomes of a redrive that was not cancelled. */
export type SentOutcome = Exclude<Outcome, 'cancelled'>

/** One redrive of a letter. */
export type RedriveRecord = Readonly<{
  /** Ordinal of this redrive, starting at 1. */
  number: number
  at: Instant
  actor: string
  /** The campaign that sent the letter, and the position of the letter in its frozen set. */
  campaign: Readonly<{ id: CampaignId; position: number }> | null
  /** Where the letter was sent, and its id there. */
  target: Readonly<{ kind: Origin['kind']; name: string; partition: number | null; id: string }>
  /** The edited version that was sent; null: the letter unchanged. */
  edit: number | null
  outcome: Outcome | null
  endedAt: Instant | null
}>

export type Lease = Readonly<{ holder: string; deadline: Instant }>

export type WaitingHead = Readonly<
  ItemHeadBase & {
    state: 'waiting'
    /** Null: the item can be leased now. Otherwise it is scheduled, and this is when it becomes available. */
    availableAt: Instant | null
    /** The deadline of a lease that ended before the item was imported. Only shown. */
    givenLeaseDeadline?: Instant
  }
>
export type LeasedHead = Readonly<ItemHeadBase & { state: 'leased'; lease: Lease }>
/** `endedAt`: retention starts then. */
export type DoneHead = Readonly<ItemHeadBase & { state: 'done'; endedAt: Instant }>
export type DeadHead = Readonly<ItemHeadBase & { state: 'dead'; endedAt: Instant }>
/**
 * A letter that a person discarded. It stays until its retention ends, so that a repeated capture is
 * recognised.
 */
export type DiscardedHead = Readonly<ItemHeadBase & { state: 'discarded'; endedAt: Instant }>
export type ItemHead = WaitingHead | LeasedHead | DoneHead | DeadHead | DiscardedHead

export type Waiting = WaitingHead & Readonly<ItemBytes>
export type Leased = LeasedHead & Readonly<ItemBytes>
export type Item = ItemHead & Readonly<ItemBytes>

export type State = ItemHead['state']
/** `scheduled` is waiting with an `availableAt`; `waiting` here is waiting without. */
export type ListedState = State | 'scheduled'

export function toListedState(item: ItemHead): ListedState {
  return item.state === 'waiting' && item.availableAt !== null ? 'scheduled' : item.state
}

/** Dead letters never expire, and the lifecycle never removes them. */
export function isLetter(item: Pick<ItemHead, 'origin'>): boolean {
  return item.origin !== null
}

/** The head after a change of state, with the bytes of the item as it was before. */
export function withBytes<Head extends ItemHead>(
  head: Head,
  { key, headers, payload }: ItemBytes,
): Head & ItemBytes {
  return { ...head, key, headers, payload }
}
