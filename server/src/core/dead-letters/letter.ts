/**
 * The changes of state of a dead letter: redrive, end of a redrive, discard, restore. Pure, like
 * core/items/transitions.ts; both stores call these functions inside their transactions.
 *
 * A letter whose redrive is in progress is leased by `redriveHolder`. No consumer can settle it: only the end
 * of its redrive releases it. So at most one redrive of a letter is in progress at any time.
 */
import type { CampaignId, QueueName } from '../ids/ids.ts'
import {
  type DeadHead,
  type DiscardedHead,
  type DoneHead,
  type Failure,
  historyMax,
  type ItemHead,
  type ItemHeadBase,
  isLetter,
  type LeasedHead,
  type LetterFacts,
  type Origin,
  type RedriveRecord,
  type SentOutcome,
  type WaitingHead,
} from '../items/item.ts'
import { isAutomatic, type QueuePolicy } from '../items/queue.ts'
import { retryDelayUs } from '../items/retry.ts'
import { nameReplayQueue } from '../kafka/replay-queues.ts'
import { addDuration, type Instant, instantMax } from '../time/instant.ts'

/** The holder that a letter shows during a redrive. Code must test `isRedriving` instead. */
export const redriveHolder = 'redrive in progress'
/** A letter keeps the records of its last redrives, up to this number. */
export const redrivesKept = 100
/** The deadline of a redrive to a queue of this store: the redrive ends when its item ends. */
export const noDeadline: Instant = instantMax

type RedrivePolicy = QueuePolicy['redrive']

/** `random` returns numbers in [0, 1). It is called only if the policy redrives letters automatically. */
export function createLetterFacts(
  deadLetteredAt: Instant,
  policy: RedrivePolicy,
  random: () => number,
): LetterFacts {
  return {
    requeueCount: 0,
    lastRedriveAt: null,
    redrives: [],
    nextRedriveAt: computeFirstRedriveAt(deadLetteredAt, policy, random),
    discardReason: '',
  }
}

/** When the policy redrives a new letter; null: the policy is manual. */
export function computeFirstRedriveAt(
  deadLetteredAt: Instant,
  policy: RedrivePolicy,
  random: () => number,
): Instant | null {
  return computeNextRedriveAt(deadLetteredAt, 1, policy, random)
}

function computeNextRedriveAt(
  now: Instant,
  number: number,
  policy: RedrivePolicy,
  random: () => number,
): Instant | null {
  if (policy.mode !== 'auto' || policy.redrivesMax === 0) return null
  return addDuration(now, retryDelayUs(policy.backoff, number, random))
}

/** Whether the policy redrives the letter at `now`. */
export function isDue(item: ItemHead, policy: RedrivePolicy, now: Instant): boolean {
  const dueAt = item.letter?.nextRedriveAt ?? null
  return policy.mode === 'auto' && dueAt !== null && dueAt <= now
}

/** Whether the letter reached the redrive limit of its policy. A letter that was never redriven has not. */
function isAtLimit(item: ItemHead, policy: RedrivePolicy): boolean {
  return item.retryCount > 0 && item.retryCount >= policy.redrivesMax
}

/** With an automatic policy a letter at the limit becomes DEAD, also if the limit was lowered to it. */
function isExhausted(item: ItemHead, policy: RedrivePolicy): boolean {
  return policy.mode === 'auto' && isAtLimit(item, policy)
}

function exhaustLetter(item: ItemHead, at: Instant): DeadHead {
  const letter = { ...getFacts(item), nextRedriveAt: null }
  return { ...copyBase(item), state: 'dead', endedAt: at, updatedAt: at, letter }
}

/**
 * Applies a changed redrive policy to a letter: schedules its automatic redrive, unschedules it, or makes the
 * letter DEAD because it reached the limit. Undefined: nothing changes. A letter that is being redriven is
 * scheduled when its redrive ends.
 */
export function replanRedrive(
  item: ItemHead,
  policy: RedrivePolicy,
  now: Instant,
  chance: number,
): ItemHead | undefined {
  if (!isLetter(item) || (item.state !== 'waiting' && item.state !== 'leased') || isRedriving(item)) {
    return undefined
  }
  if (item.state === 'waiting' && isExhausted(item, policy)) return exhaustLetter(item, now)
  const facts = getFacts(item)
  // As at the end of a redrive: a letter that may have been processed is not redriven automatically, nor is a
  // letter whose redrive was cancelled.
  const outcome = facts.redrives[0]?.outcome
  const isForPerson = outcome === 'unknown' || outcome === 'cancelled' || isRestoredAndNotRedriven(facts)
  // A leased letter at the limit is scheduled too: once it waits again and is due, it becomes DEAD.
  const planned = isForPerson ? null : computeNextRedriveAt(now, item.retryCount + 1, policy, () => chance)
  const next = isAutomatic({ redrive: policy }) ? (facts.nextRedriveAt ?? planned) : null
  return next === facts.nextRedriveAt ? undefined : { ...item, letter: { ...facts, nextRedriveAt: next } }
}

/**
 * Postpones a due letter that could not be redriven to `until`, or makes it DEAD if it reached the limit.
 * Undefined: the letter is not waiting or not due.
 */
export function postponeRedrive(
  item: ItemHead,
  policy: RedrivePolicy,
  until: Instant,
  now: Instant,
): WaitingHead | DeadHead | undefined {
  if (item.state !== 'waiting' || !isDue(item, policy, now)) return undefined
  if (isExhausted(item, policy)) return exhaustLetter(item, now)
  return { ...item, letter: { ...getFacts(item), nextRedriveAt: until } }
}

/** A person restored the letter, and it was not redriven since then. */
function isRestoredAndNotRedriven({ restoredAt, lastRedriveAt }: LetterFacts): boolean {
  return restoredAt !== undefined && (lastRedriveAt === null || lastRedriveAt < restoredAt)
}

/**
 * The queue of this store that a redrive goes to: the queue that the letter came from, the queue of the
 * consumer of a dead webhook job, or the queue from which the Kafka driver sends to the cluster of the
 * letter. Null: there is none. An origin of kind `kafka` without a cluster is a queue: clients that capture
 * letters over HTTP may call a queue a topic and name an offset.
 */
export function findSourceQueue(origin: Origin | null): QueueName | null {
  if (origin === null) return null
  if (origin.kind === 'kafka' && origin.cluster !== null) return nameReplayQueue(origin.cluster, 'default')
  return origin.kind !== 'queue' && origin.cluster !== null ? null : origin.name
}

export function isRedriving(item: Pick<ItemHead, 'state' | 'letter'>): boolean {
  return item.state === 'leased' && item.letter?.redrives[0]?.outcome === null
}

export type RedriveStart = Readonly<
  Pick<RedriveRecord, 'actor' | 'campaign' | 'target' | 'edit'> & { at: Instant; deadline: Instant }
>

export function startRedrive(item: ItemHead, start: RedriveStart): LeasedHead {
  const { deadline, at, ...rest } = start
  const facts = withWasDead(item)
  const number = (facts.redrives[0]?.number ?? 0) + 1
  const record: RedriveRecord = { number, at, ...rest, outcome: null, endedAt: null }
  const letter: LetterFacts = {
    ...facts,
    requeueCount: facts.requeueCount + 1,
    lastRedriveAt: at,
    nextRedriveAt: null,
    redrives: [record, ...facts.redrives].slice(0, redrivesKept),
  }
  return {
    ...copyBase(item),
    state: 'leased',
    lease: { holder: redriveHolder, deadline },
    letter,
    updatedAt: at,
  }
}

export type RedriveEnd = Readonly<{
  outcome: SentOutcome
  /** The failure of the redriven item; null if it has none. */
  failure: Failure | null
  /** Failures of that item before this one, newest first. */
  earlier?: readonly Failure[]
  at: Instant
  /** In [0, 1): the jitter of the backoff. */
  chance: number
  /** Where the letter was sent, if the start of the redrive could not know it. */
  target?: RedriveRecord['target'] | undefined
}>

/** The letter keeps its id and its position in the dead queue: it never left the queue. */
export function endRedrive(
  item: LeasedHead,
  end: RedriveEnd,
  policy: RedrivePolicy,
): WaitingHead | DoneHead | DeadHead {
  const { outcome, failure, earlier = [], at, chance, target } = end
  const facts = withoutWasDead(item)
  const [record, ...before] = facts.redrives
  const sentTo = target === undefined ? {} : { target }
  const closed = record === undefined ? [] : [{ ...record, ...sentTo, outcome, endedAt: at }]
  const base = copyBase(item)
  const letter: LetterFacts = { ...facts, redrives: [...closed, ...before], nextRedriveAt: null }
  if (outcome === 'resolved') return { ...base, state: 'done', endedAt: at, updatedAt: at, letter }

  const retryCount = item.retryCount + 1
  const changed = { ...base, retryCount, updatedAt: at, ...withFailure(item, failure, earlier) }
  if (retryCount >= policy.redrivesMax) return { ...changed, state: 'dead', endedAt: at, letter }
  // Schedule the next redrive only after a known failure: an unknown outcome may mean processed.
  const next = outcome === 'failed' ? computeNextRedriveAt(at, retryCount + 1, policy, () => chance) : null
  return { ...changed, state: 'waiting', availableAt: null, letter: { ...letter, nextRedriveAt: next } }
}

/**
 * Ends a redrive whose item was removed before a worker leased it. The letter is as before the redrive: DEAD
 * if it was DEAD or reached the redrive limit, else waiting. The redrive does not count as failed, and only a
 * person redrives the letter again.
 */
export function cancelRedrive(item: LeasedHead, at: Instant, policy: RedrivePolicy): WaitingHead | DeadHead {
  const [record, ...before] = getFacts(item).redrives
  const closed = record === undefined ? [] : [{ ...record, outcome: 'cancelled', endedAt: at } as const]
  const letter = { ...withoutWasDead(item), redrives: [...closed, ...before], nextRedriveAt: null }
  const base = { ...copyBase(item), updatedAt: at, letter }
  if (wasDead(item) || isAtLimit(item, policy)) return { ...base, state: 'dead', endedAt: at }
  return { ...base, state: 'waiting', availableAt: null }
}

function wasDead(item: ItemHead): boolean {
  return item.letter?.wasDead === true
}

/** The facts of a letter, with a note if it is DEAD now. */
function withWasDead(item: ItemHead): LetterFacts {
  const facts = withoutWasDead(item)
  return item.state === 'dead' ? { ...facts, wasDead: true } : facts
}

function withoutWasDead(item: ItemHead): LetterFacts {
  const facts = getFacts(item)
  if (facts.wasDead === undefined) return facts
  const { wasDead: _, ...rest } = facts
  return rest
}

export function discardLetter(
  item: ItemHead,
  reason: string,
  at: Instant,
  campaignId?: CampaignId,
): DiscardedHead {
  const letter = {
    ...withWasDead(item),
    nextRedriveAt: null,
    discardReason: reason,
    ...(campaignId !== undefined && { discardCampaign: campaignId }),
  }
  return { ...copyBase(item), state: 'discarded', endedAt: at, updatedAt: at, letter }
}

/** The reason of a discard as operators see it: with the campaign that discarded the letter. */
export function describeDiscard({ discardReason, discardCampaign }: LetterFacts): string {
  return discardCampaign === undefined ? discardReason : `${discardReason} (campaign ${discardCampaign})`
}

/** The campaigns that redrove or discarded a letter, as far as its facts record them. */
export function listCampaignIds({ redrives, discardCampaign }: LetterFacts): readonly CampaignId[] {
  const byRedrive = redrives.flatMap(({ campaign }) => campaign?.id ?? [])
  return [...new Set(discardCampaign === undefined ? byRedrive : [...byRedrive, discardCampaign])]
}

/**
 * Makes a discarded or archived letter open again. A letter that was DEAD or reached the redrive limit
 * becomes DEAD, because as a waiting letter it could not be redriven within its policy. Its retention starts
 * again at `at`.
 */
export function restoreLetter(item: ItemHead, at: Instant, policy: RedrivePolicy): WaitingHead | DeadHead {
  const { discardCampaign: _, ...facts } = withoutWasDead(item)
  const letter = { ...facts, discardReason: '', nextRedriveAt: null, restoredAt: at }
  const base = { ...copyBase(item), updatedAt: at, letter }
  const isDead = item.state === 'dead' || wasDead(item) || isAtLimit(item, policy)
  if (isDead) return { ...base, state: 'dead', endedAt: at }
  return { ...base, state: 'waiting', availableAt: null }
}

/** The facts of a letter that a consumer of its dead queue ended: its automatic redrive is cancelled. */
export function withoutNextRedrive({ letter }: Pick<ItemHead, 'letter'>): LetterFacts | null {
  return letter === null || letter.nextRedriveAt === null ? letter : { ...letter, nextRedriveAt: null }
}

/**
 * When a letter that failed again came to its group. Never before the letter was created, even if the clock
 * was set back since.
 */
export function computeFailedAgainAt({ createdAt, updatedAt }: ItemHead): Instant {
  return Math.max(createdAt, updatedAt)
}

/**
 * Replaces the failure of an item and adds the previous one to its history, after the failures in between
 * (`earlier`, newest first). A null failure changes nothing.
 */
export function withFailure(
  item: Pick<ItemHead, 'failure' | 'history'>,
  failure: Failure | null,
  earlier: readonly Failure[] = [],
): Readonly<{ failure: Failure | null; history: readonly Failure[] }> {
  if (failure === null || failure === item.failure) return { failure: item.failure, history: item.history }
  const before = item.failure === null ? [] : [shortenStack(item.failure)]
  return { failure, history: [...earlier, ...before, ...item.history].slice(0, historyMax) }
}

const stackKept = 2_000

/** Failures in the history keep only the beginning of their stack. */
function shortenStack(failure: Failure): Failure {
  return failure.stack.length <= stackKept
    ? failure
    : { ...failure, stack: failure.stack.slice(0, stackKept) }
}

function getFacts(item: ItemHead): LetterFacts {
  return (
    item.letter ?? {
      requeueCount: 0,
      lastRedriveAt: null,
      redrives: [],
      nextRedriveAt: null,
      discardReason: '',
    }
  )
}

/**
 * The fields that every state has, without the fields of the present state. Every change of state calls this,
 * so the fields are listed one by one: a rest pattern (`{ lease, ...rest }`) costs many times as much.
 */
export function copyBase(item: ItemHead): ItemHeadBase {
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
    createdAt: item.createdAt,
    updatedAt: item.updatedAt,
    expireDeadline: item.expireDeadline,
    failure: item.failure,
    origin: item.origin,
    deadLetteredAt: item.deadLetteredAt,
    letterId: item.letterId,
    retryCount: item.retryCount,
    history: item.history,
    groupId: item.groupId,
    letter: item.letter,
  }
}

/** Whether a letter has to be grouped again: only another failure can change its group. */
export function isRegrouped(
  before: Pick<ItemHead, 'failure'>,
  after: Pick<ItemHead, 'failure' | 'origin'>,
): boolean {
  return after.origin !== null && before.failure !== after.failure
}
