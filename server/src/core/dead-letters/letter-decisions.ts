/**
 * Decides whether letters may be redriven, cancelled, discarded or restored, and which refusal is reported
 * when several apply. Pure, so that both stores give the same answer; they look up the facts and execute the
 * plan.
 */

import type { CampaignId, LetterId, QueueName } from '../ids/ids.ts'
import { type ItemHead, isLetter } from '../items/item.ts'
import type { Queue, QueuePolicy } from '../items/queue.ts'
import type { Instant } from '../time/instant.ts'
import { mapPartition } from './dead-letter.ts'
import { findSourceQueue, isDue, isRedriving } from './letter.ts'

/** Why a letter cannot be redriven or discarded now. */
export type LetterRefusal =
  | 'missing'
  /** The letter is in the archive and must be restored first. */
  | 'archived'
  /** Another redrive of the letter is in progress. */
  | 'redriving'
  /** A consumer of the dead queue holds the letter. */
  | 'leased'
  | 'resolved'
  | 'discarded'
  /** The letter is DEAD: only a person may redrive it. */
  | 'dead'
  /** The letter has used all redrives that its policy allows. */
  | 'exhausted'

/**
 * `no-target`: the target queue does not exist, or the origin is not a queue. `dead-target`: the target is
 * the dead queue of another queue, or holds or ever held letters; a redrive never goes there. `no-edit`: the
 * edited version does not exist. `not-due`: the automatic redrive of the letter is not due.
 */
export type RedriveRefusal = LetterRefusal | 'no-target' | 'dead-target' | 'no-edit' | 'not-due'

type RedrivePolicy = QueuePolicy['redrive']

/** `isDeadAllowed`: a person asks, so DEAD letters go too. `isCapped`: the limit of the policy applies. */
export type RedriveRules = Readonly<{ isDeadAllowed: boolean; isCapped: boolean }>

/** The rules of one command. `isDueOnly`: redrive only letters whose automatic redrive is due at `now`. */
export type RedriveCommandRules = RedriveRules & Readonly<{ isDueOnly?: boolean; now: Instant }>

/** A letter that a store found, with the row of its dead queue. */
type FoundLetter = Readonly<{ queueRow: Readonly<{ queue: Pick<Queue, 'redrive'> }>; letter: ItemHead }>
type TargetQueue = Readonly<{ queue: Pick<Queue, 'partitions'> }>

/** `queue`: the name of the target queue; null: the queue that the letter came from. */
export type RequestedRedrive = Readonly<{ letterId: LetterId; queue: QueueName | null }>

/**
 * The facts that a store looks up. Each function is called only if the checks before it passed, in the order
 * in which they are listed here.
 */
export interface RedriveLookups<Request, Found, Target> {
  findLetter(request: Request): Found | 'missing' | 'archived'
  /** Why the campaign that asks for this redrive must not send the letter; undefined: it may. */
  findCampaignRefusal(request: Request): RedriveRefusal | undefined
  findTarget(queueName: QueueName): Target | 'no-target' | 'dead-target'
  /** True also if the request names no edited version. */
  hasEdit(request: Request): boolean
}

export type RedrivePlan<Request, Found, Target> = Readonly<{
  request: Request
  found: Found
  target: Target
  partition: number
}>

/**
 * Decides all redrives of one command, in order. If a letter is named twice, the first redrive that is
 * allowed counts, and every later one is refused as `redriving`, as it would be in a command of its own.
 */
export function decideRedrives<
  Request extends RequestedRedrive,
  Found extends FoundLetter,
  Target extends TargetQueue,
>(
  requests: readonly Request[],
  rules: RedriveCommandRules,
  lookups: RedriveLookups<Request, Found, Target>,
): (RedrivePlan<Request, Found, Target> | RedriveRefusal)[] {
  const started = new Set<LetterId>()
  return requests.map((request) => {
    const isStarted = started.has(request.letterId)
    const decision = decideRedrive(request, isStarted, rules, lookups)
    if (typeof decision !== 'string') started.add(request.letterId)
    return decision
  })
}

/** `isStarted`: the same command already redrives this letter. */
export function decideRedrive<
  Request extends RequestedRedrive,
  Found extends FoundLetter,
  Target extends TargetQueue,
>(
  request: Request,
  isStarted: boolean,
  rules: RedriveCommandRules,
  lookups: RedriveLookups<Request, Found, Target>,
): RedrivePlan<Request, Found, Target> | RedriveRefusal {
  if (isStarted) return 'redriving'
  const found = lookups.findLetter(request)
  if (typeof found === 'string') return found
  const { letter } = found
  const refusal =
    findCommandRefusal(letter, rules, found.queueRow.queue.redrive) ?? lookups.findCampaignRefusal(request)
  if (refusal !== undefined) return refusal

  const queueName = chooseTarget(request, letter)
  if (queueName === null) return 'no-target'
  if (queueName === letter.queue) return 'dead-target'
  const target = lookups.findTarget(queueName)
  if (typeof target === 'string') return target
  if (!lookups.hasEdit(request)) return 'no-edit'
  const partition = mapPartition(letter.origin?.partition ?? 0, target.queue)
  return { request, found, target, partition }
}

/** The queue that a letter is redriven to; null: a driver has to send it, not the store. */
export function chooseTarget(
  { queue }: RequestedRedrive,
  { origin }: Pick<ItemHead, 'origin'>,
): QueueName | null {
  return queue ?? findSourceQueue(origin)
}

/** The refusals that depend only on the letter, its policy and the rules of the command. */
export function findCommandRefusal(
  letter: ItemHead,
  rules: RedriveCommandRules,
  policy: RedrivePolicy,
): RedriveRefusal | undefined {
  const refusal = findRedriveRefusal(letter, rules, policy)
  if (refusal !== undefined || rules.isDueOnly !== true) return refusal
  return isDue(letter, policy, rules.now) ? undefined : 'not-due'
}

/** The refusals that depend only on the state of the letter and its policy. */
export function findRedriveRefusal(
  letter: ItemHead | undefined,
  rules: RedriveRules,
  policy: RedrivePolicy,
): LetterRefusal | undefined {
  if (letter === undefined || !isLetter(letter)) return 'missing'
  const refusal = refuseByState(letter)
  if (refusal !== undefined && !(refusal === 'dead' && rules.isDeadAllowed)) return refusal
  return rules.isCapped && letter.retryCount >= policy.redrivesMax ? 'exhausted' : undefined
}

/**
 * A letter that is being redriven or held by a consumer cannot be discarded; a resolved letter need not be.
 */
export function findDiscardRefusal(letter: ItemHead | undefined): LetterRefusal | undefined {
  if (letter === undefined || !isLetter(letter)) return 'missing'
  const refusal = refuseByState(letter)
  return refusal === 'dead' ? undefined : refusal
}

/**
 * Why a live or archived letter cannot be restored. `not-discarded`: a live letter that was not discarded, or
 * a letter that the given campaign did not discard.
 */
export function findRestoreRefusal(
  letter: ItemHead,
  isArchived: boolean,
  campaignId: CampaignId | undefined,
): 'not-discarded' | undefined {
  if (letter.state !== 'discarded')
    return isArchived && campaignId === undefined ? undefined : 'not-discarded'
  const isMatch = campaignId === undefined || letter.letter?.discardCampaign === campaignId
  return isMatch ? undefined : 'not-discarded'
}

/**
 * Why a redrive cannot be cancelled. `not-redriving`: no redrive of the letter is in progress. `elsewhere`:
 * the letter was sent to another system. `leased`: a worker has or had the item.
 */
export type CancelRefusal = 'missing' | 'archived' | 'not-redriving' | 'elsewhere' | 'leased'

/**
 * Where the item of the redrive in progress was stored. Undefined: none is in progress, or it is elsewhere.
 */
export function locateRedrivenItem(letter: ItemHead): RedriveLocation | undefined {
  const record = letter.letter?.redrives[0]
  if (!isRedriving(letter) || record === undefined || record.target.kind !== 'queue') return undefined
  const { name, partition, id } = record.target
  return { queue: name, partition: partition ?? 0, id, number: record.number }
}
export type RedriveLocation = Readonly<{ queue: QueueName; partition: number; id: string; number: number }>

/**
 * Decides with the letter and the row at the location of its item, both locked. No row is there once the item
 * was retried, because it then has another id.
 */
export function findCancelRefusal(
  letter: ItemHead,
  item: Pick<ItemHead, 'state' | 'letterId' | 'retryCount' | 'attempts'> | undefined,
): CancelRefusal | undefined {
  if (!isLetter(letter)) return 'missing'
  if (!isRedriving(letter)) return 'not-redriving'
  const location = locateRedrivenItem(letter)
  if (location === undefined) return 'elsewhere'
  const isItem = item?.letterId === letter.rootId && item.retryCount === location.number
  const isUntouched = item?.state === 'waiting' && item.attempts === 0
  return isItem && isUntouched ? undefined : 'leased'
}

/**
 * Decides how a request that removes items treats one of them. Open letters are discarded, so that they can
 * be restored. A letter whose redrive is in progress is kept: the end of the redrive decides about it. A
 * discarded letter is kept too, so that a repeated request does not remove it for good.
 */
export type Removal = 'remove' | 'discard' | 'keep'

export function decideRemoval(item: ItemHead): Removal {
  if (!isLetter(item) || item.state === 'done') return 'remove'
  return item.state === 'discarded' || isRedriving(item) ? 'keep' : 'discard'
}

function refuseByState(letter: ItemHead): LetterRefusal | undefined {
  switch (letter.state) {
    case 'waiting':
      return undefined
    case 'leased':
      return isRedriving(letter) ? 'redriving' : 'leased'
    case 'done':
      return 'resolved'
    case 'dead':
      return 'dead'
    case 'discarded':
      return 'discarded'
  }
}
