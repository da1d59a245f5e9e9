/**
 * What becomes of a dead letter: sent back, come back, resolved, given up, restored. Pure, like
 * core/transitions.ts; both storages call it inside their transactions.
 *
 * A letter whose redrive is under way is leased by `redriveHolder`. Nobody else can settle it: only its
 * redrive ends it. So there is never a second redrive of a letter at the same time.
 */
import { type Instant, instantMax, later } from './instant.ts'
import {
  type Dead,
  type Discarded,
  type Done,
  type Failure,
  historyMax,
  type Item,
  type ItemBase,
  isLetter,
  type Leased,
  type LetterFacts,
  type Origin,
  type Outcome,
  type RedriveRecord,
  type Waiting,
} from './item.ts'
import { isAutomatic, type QueuePolicy } from './queue.ts'
import { retryDelayUs } from './retry.ts'

/** Shown as who holds the letter; what decides is `isRedriving`. */
export const redriveHolder = 'redrive under way'
/** How many redrives of a letter are remembered one by one. */
export const redrivesKept = 100
/** For redrives whose outcome the store itself sees: they end when the item ends. */
export const noDeadline: Instant = instantMax

/** Why a letter cannot be sent back, or given up, now. */
export type LetterRefusal =
  | 'missing'
  /** In the archive: to be restored first. */
  | 'archived'
  /** Another redrive of it is under way. */
  | 'redriving'
  /** A consumer of its dead queue holds it. */
  | 'leased'
  | 'resolved'
  | 'discarded'
  /** DEAD: a person must say so. */
  | 'dead'
  /** The redrives of its policy are used up. */
  | 'exhausted'

type RedrivePolicy = QueuePolicy['redrive']

/** `random` gives numbers in [0, 1), and is asked only where the policy sends letters back by itself. */
export function newLetterFacts(diedAt: Instant, policy: RedrivePolicy, random: () => number): LetterFacts {
  return {
    requeues: 0,
    lastRedriveAt: null,
    redrives: [],
    nextRedriveAt: firstRedriveAt(diedAt, policy, random),
    discardReason: '',
  }
}

/** When the policy sends a new letter back; null where it sends nothing by itself. */
export function firstRedriveAt(diedAt: Instant, policy: RedrivePolicy, random: () => number): Instant | null {
  return nextRedriveAt(diedAt, 1, policy, random)
}

function nextRedriveAt(
  now: Instant,
  number: number,
  policy: RedrivePolicy,
  random: () => number,
): Instant | null {
  if (policy.mode !== 'auto' || policy.redrivesMax === 0) return null
  return later(now, retryDelayUs(policy.backoff, number, random))
}

/** Whether the policy sends it back now. */
export function isDue(item: Item, policy: RedrivePolicy, now: Instant): boolean {
  const dueAt = item.letter?.nextRedriveAt ?? null
  return policy.mode === 'auto' && dueAt !== null && dueAt <= now
}

/** At the cap of its policy; what was never sent has used up nothing. */
function isUsedUp(item: Item, policy: RedrivePolicy): boolean {
  return item.redrives > 0 && item.redrives >= policy.redrivesMax
}

/** Where letters go back by themselves what reached the cap is DEAD, also when the cap came down to it. */
function isExhausted(item: Item, policy: RedrivePolicy): boolean {
  return policy.mode === 'auto' && isUsedUp(item, policy)
}

function exhaustLetter(item: Item, at: Instant): Dead {
  const letter = { ...factsOf(item), nextRedriveAt: null }
  return { ...baseOf(item), state: 'dead', endedAt: at, updatedAt: at, letter }
}

/**
 * The letter as a policy has it that was changed while it waited: with a time at which it goes back by itself, or without
 * one, or DEAD where it reached the cap. Undefined: it is so already. What is under way is planned when it comes back.
 */
export function replanRedrive(
  item: Item,
  policy: RedrivePolicy,
  now: Instant,
  chance: number,
): Item | undefined {
  if (!isLetter(item) || (item.state !== 'waiting' && item.state !== 'leased') || isRedriving(item)) {
    return undefined
  }
  if (item.state === 'waiting' && isExhausted(item, policy)) return exhaustLetter(item, now)
  const facts = factsOf(item)
  // As when it came back: what may have been processed is not sent again by itself.
  const isForPerson = facts.redrives[0]?.outcome === 'unknown' || waitsSinceRestored(facts)
  // At the cap, too, while a consumer holds it: given back, it is met when it is due, and DEAD then.
  const planned = isForPerson ? null : nextRedriveAt(now, item.redrives + 1, policy, () => chance)
  const next = isAutomatic({ redrive: policy }) ? (facts.nextRedriveAt ?? planned) : null
  return next === facts.nextRedriveAt ? undefined : { ...item, letter: { ...facts, nextRedriveAt: next } }
}

/** A letter that is due and could not be sent: due again later, or DEAD. Undefined: it is not due, or does not wait. */
export function postponeRedrive(
  item: Item,
  policy: RedrivePolicy,
  until: Instant,
  now: Instant,
): Waiting | Dead | undefined {
  if (item.state !== 'waiting' || !isDue(item, policy, now)) return undefined
  if (isExhausted(item, policy)) return exhaustLetter(item, now)
  return { ...item, letter: { ...factsOf(item), nextRedriveAt: until } }
}

/** A person brought it back from the archive, and nobody sent it since. */
function waitsSinceRestored({ restoredAt, lastRedriveAt }: LetterFacts): boolean {
  return restoredAt !== undefined && (lastRedriveAt === null || lastRedriveAt < restoredAt)
}

/**
 * The queue that a letter goes back to unless somebody names another; null where a driver of its own has to send it:
 * webhook deliveries, and records of a cluster that is named. Who captures over HTTP calls a queue
 * of ours a topic as well, and may give the offset it had elsewhere.
 */
export function queueOfOrigin(origin: Origin | null): string | null {
  if (origin === null || origin.kind === 'webhook') return null
  return origin.kind !== 'queue' && origin.cluster !== null ? null : origin.name
}

export function isRedriving(item: Pick<Item, 'state' | 'letter'>): boolean {
  return item.state === 'leased' && item.letter?.redrives[0]?.outcome === null
}

/** What may be sent back: `open` is what waits for somebody; a person may also send what is DEAD. */
export type RedriveRules = Readonly<{ isDeadAllowed: boolean; isCapped: boolean }>

export function whyNotRedriven(
  item: Item | undefined,
  rules: RedriveRules,
  policy: RedrivePolicy,
): LetterRefusal | undefined {
  if (item === undefined || !isLetter(item)) return 'missing'
  const why = whyNotOpen(item)
  if (why !== undefined && !(why === 'dead' && rules.isDeadAllowed)) return why
  if (rules.isCapped && item.redrives >= policy.redrivesMax) return 'exhausted'
  return undefined
}

/** A letter that is under way, or held by a consumer, cannot be given up; one that is resolved needs not. */
export function whyNotDiscarded(item: Item | undefined): LetterRefusal | undefined {
  if (item === undefined || !isLetter(item)) return 'missing'
  const why = whyNotOpen(item)
  return why === 'dead' ? undefined : why
}

function whyNotOpen(item: Item): LetterRefusal | undefined {
  switch (item.state) {
    case 'waiting':
      return undefined
    case 'leased':
      return isRedriving(item) ? 'redriving' : 'leased'
    case 'done':
      return 'resolved'
    case 'dead':
      return 'dead'
    case 'discarded':
      return 'discarded'
  }
}

export type RedriveStart = Readonly<
  Pick<RedriveRecord, 'actor' | 'campaign' | 'target' | 'edit'> & { at: Instant; deadline: Instant }
>

export function startRedrive(item: Item, start: RedriveStart): Leased {
  const { deadline, at, ...rest } = start
  const facts = factsOf(item)
  const number = (facts.redrives[0]?.number ?? 0) + 1
  const record: RedriveRecord = { number, at, ...rest, outcome: null, endedAt: null }
  const letter: LetterFacts = {
    ...facts,
    requeues: facts.requeues + 1,
    lastRedriveAt: at,
    nextRedriveAt: null,
    redrives: [record, ...facts.redrives].slice(0, redrivesKept),
  }
  return {
    ...baseOf(item),
    state: 'leased',
    lease: { holder: redriveHolder, deadline },
    letter,
    updatedAt: at,
  }
}

export type RedriveEnd = Readonly<{
  outcome: Outcome
  /** Of the redriven item; null when there is none to tell. */
  failure: Failure | null
  /** Failures of that item before this one, newest first. */
  earlier?: readonly Failure[]
  at: Instant
  /** In [0, 1): the jitter of the backoff. */
  chance: number
}>

/** It keeps its id and its place: it is the same letter, and never left. */
export function endRedrive(item: Leased, end: RedriveEnd, policy: RedrivePolicy): Waiting | Done | Dead {
  const { outcome, failure, earlier = [], at, chance } = end
  const facts = factsOf(item)
  const [record, ...before] = facts.redrives
  const closed = record === undefined ? [] : [{ ...record, outcome, endedAt: at }]
  const base = baseOf(item)
  const letter: LetterFacts = { ...facts, redrives: [...closed, ...before], nextRedriveAt: null }
  if (outcome === 'resolved') return { ...base, state: 'done', endedAt: at, updatedAt: at, letter }

  const redrives = item.redrives + 1
  const changed = { ...base, redrives, updatedAt: at, ...withFailure(item, failure, earlier) }
  if (redrives >= policy.redrivesMax) return { ...changed, state: 'dead', endedAt: at, letter }
  // Sent again by itself only when it is known to have failed: unknown may mean processed.
  const next = outcome === 'failed' ? nextRedriveAt(at, redrives + 1, policy, () => chance) : null
  return { ...changed, state: 'waiting', availableAt: null, letter: { ...letter, nextRedriveAt: next } }
}

export function discardLetter(item: Item, reason: string, at: Instant): Discarded {
  const letter = { ...factsOf(item), discardReason: reason, nextRedriveAt: null }
  return { ...baseOf(item), state: 'discarded', endedAt: at, updatedAt: at, letter }
}

/**
 * Back among the open ones. What used up its redrives is DEAD, as it was before or would be with the next one that fails:
 * nobody could send it as PENDING but by a person's word. Its time of retention begins anew.
 */
export function restoreLetter(item: Item, at: Instant, policy: RedrivePolicy): Waiting | Dead {
  const letter = { ...factsOf(item), discardReason: '', nextRedriveAt: null, restoredAt: at }
  const base = { ...baseOf(item), updatedAt: at, letter }
  if (item.state === 'dead' || isUsedUp(item, policy)) return { ...base, state: 'dead', endedAt: at }
  return { ...base, state: 'waiting', availableAt: null }
}

/** What is known of a letter that ended where it was, by a consumer of its dead queue: it goes nowhere by itself any more. */
export function withoutPlan({ letter }: Pick<Item, 'letter'>): LetterFacts | null {
  return letter === null || letter.nextRedriveAt === null ? letter : { ...letter, nextRedriveAt: null }
}

/** When the store got it, or got it back from the archive. Unlike the time of death nobody else says it. */
export function arrivedAt(item: Item): Instant {
  return Math.max(item.createdAt, item.letter?.restoredAt ?? item.createdAt)
}

/** When a letter that failed anew came to its group. Not before it was there, though the clock may have been set back since. */
export function failedAgainAt({ createdAt, updatedAt }: Item): Instant {
  return Math.max(createdAt, updatedAt)
}

/**
 * The new failure, and the one before it in the history, with those in between (`earlier`). A null one
 * changes nothing.
 */
export function withFailure(
  item: Pick<Item, 'failure' | 'history'>,
  failure: Failure | null,
  earlier: readonly Failure[] = [],
): Readonly<{ failure: Failure | null; history: readonly Failure[] }> {
  if (failure === null || failure === item.failure) return { failure: item.failure, history: item.history }
  const before = item.failure === null ? [] : [shortened(item.failure)]
  return { failure, history: [...earlier, ...before, ...item.history].slice(0, historyMax) }
}

const stackKept = 2_000

/** What is past is kept, but not at any length. */
function shortened(failure: Failure): Failure {
  return failure.stack.length <= stackKept
    ? failure
    : { ...failure, stack: failure.stack.slice(0, stackKept) }
}

function factsOf(item: Item): LetterFacts {
  return (
    item.letter ?? { requeues: 0, lastRedriveAt: null, redrives: [], nextRedriveAt: null, discardReason: '' }
  )
}

/**
 * What every state has: the item without what only its present state has. Named one by one, because taking some away from
 * the rest costs many times as much, and every change of state begins with this.
 */
export function baseOf(item: Item): ItemBase {
  return {
    id: item.id,
    rootId: item.rootId,
    queue: item.queue,
    partition: item.partition,
    sourceId: item.sourceId,
    attempts: item.attempts,
    attemptsMax: item.attemptsMax,
    priority: item.priority,
    kind: item.kind,
    encoding: item.encoding,
    reference: item.reference,
    key: item.key,
    headers: item.headers,
    payload: item.payload,
    createdAt: item.createdAt,
    updatedAt: item.updatedAt,
    expireDeadline: item.expireDeadline,
    failure: item.failure,
    origin: item.origin,
    diedAt: item.diedAt,
    letterId: item.letterId,
    redrives: item.redrives,
    history: item.history,
    groupId: item.groupId,
    letter: item.letter,
  }
}
