import type { Instant } from './instant.ts'

/** Name and value as they came; a value may be absent. Order and repeats are kept. */
export type Header = readonly [name: string, value: Uint8Array | null]

/** Why an item failed. Counted and timed over all its attempts, not only the last one. */
export type Failure = Readonly<{
  /** A short code that is matched exactly, e.g. `attempts`, `expired`, `http_503`. */
  reason: string
  errorClass: string
  message: string
  stack: string
  attempts: number
  firstFailedAt: Instant
  lastFailedAt: Instant
  worker: string
}>

/** Where a dead letter came from, and so where a redrive sends it. */
export type Origin = Readonly<{
  kind: 'queue' | 'webhook' | 'kafka' | 'http'
  /** The queue, the topic, or the channel and consumer: what people call the place. */
  name: string
  partition: number | null
  /** Its id there: the item's id, the job's id, or the offset. */
  id: string
  group: string | null
  cluster: string | null
  createdAt: Instant
}>

/** What an item has in every state. */
export interface ItemBase {
  /** Changes when the item goes back to the tail: the order of ids is the order of the queue. */
  id: string
  /** The id it was accepted with. Never changes: what a letter is known by. */
  rootId: string
  queue: string
  partition: number
  /** What it is elsewhere; unique in its queue. Null for what was produced here. */
  sourceId: string | null
  /** Counted on lease, not on failure: a crash reports nothing. */
  attempts: number
  /** 0: the queue's policy decides. */
  attemptsMax: number
  /** Higher goes first. */
  priority: number
  kind: string
  encoding: string
  reference: string
  key: Uint8Array | null
  headers: readonly Header[]
  payload: Uint8Array
  createdAt: Instant
  updatedAt: Instant
  expireDeadline: Instant
  failure: Failure | null
  /** Set on what arrived as a dead letter, and only there. */
  origin: Origin | null
  /** When it arrived as a dead letter, or when it became dead in place. */
  diedAt: Instant | null
  /** The letter (its root id) that this item is a redrive of. */
  letterId: string | null
  /** For a letter: how many redrives came back, over its whole life (retry_count). For its redrive: the how manieth it is. */
  redrives: number
  /** The failures before the present one, newest first; at most `historyMax`. */
  history: readonly Failure[]
  /** The group of its cause. Letters have one, given by the store; nothing else has. */
  groupId: number | null
  /** What only letters have, see core/letter.ts. */
  letter: LetterFacts | null
}

/** How many earlier failures are kept of an item. */
export const historyMax = 100

export type LetterFacts = Readonly<{
  /** How often somebody sent it back, or the policy did: also those redrives that did not come back. */
  requeues: number
  lastRedriveAt: Instant | null
  /** Newest first, at most `redrivesKept`. The first has no outcome while it is under way. */
  redrives: readonly RedriveRecord[]
  /** When it goes back by itself; null: only when somebody sends it. */
  nextRedriveAt: Instant | null
  /** Why a person gave it up; empty unless discarded. */
  discardReason: string
  /** When it came back from the archive; undefined: it was never there. */
  restoredAt?: Instant
}>

/** One redrive of a letter. `unknown`: nobody can tell any more whether it was processed. */
export type Outcome = 'resolved' | 'failed' | 'unknown'
export type RedriveRecord = Readonly<{
  /** 1, 2, … over the life of the letter. */
  number: number
  at: Instant
  actor: string
  /** The campaign that sent it, and its place in the frozen set. */
  campaign: Readonly<{ id: string; place: number }> | null
  /** Where it went, and the id that it had there. */
  target: Readonly<{ kind: Origin['kind']; name: string; partition: number | null; id: string }>
  /** The edited version that was sent; null: the letter as it is. */
  edit: number | null
  outcome: Outcome | null
  endedAt: Instant | null
}>

export type Lease = Readonly<{ holder: string; deadline: Instant }>

/**
 * `availableAt`: null when it can be leased now, else when it becomes so ("scheduled").
 * `givenLeaseDeadline`: of a lease that had ended where it was imported from. Shown, and means nothing.
 */
export type Waiting = Readonly<
  ItemBase & { state: 'waiting'; availableAt: Instant | null; givenLeaseDeadline?: Instant }
>
export type Leased = Readonly<ItemBase & { state: 'leased'; lease: Lease }>
/** `endedAt` starts the clock of retention. */
export type Done = Readonly<ItemBase & { state: 'done'; endedAt: Instant }>
export type Dead = Readonly<ItemBase & { state: 'dead'; endedAt: Instant }>
/** A letter that a person gave up: a tombstone until its retention ends, so that nothing resurrects it. */
export type Discarded = Readonly<ItemBase & { state: 'discarded'; endedAt: Instant }>
export type Item = Waiting | Leased | Done | Dead | Discarded
export type State = Item['state']
/** `scheduled` is waiting with an `availableAt`; `waiting` here is waiting without. */
export type ListedState = State | 'scheduled'

export function listedState(item: Item): ListedState {
  return item.state === 'waiting' && item.availableAt !== null ? 'scheduled' : item.state
}

/** Dead letters never expire and are never removed by the lifecycle. */
export function isLetter(item: Pick<ItemBase, 'origin'>): boolean {
  return item.origin !== null
}
