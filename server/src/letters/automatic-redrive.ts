/**
 * Redrives letters automatically when the policy of their dead queue is `auto` and they are due. Safe on
 * several servers at once: the transaction that sends a letter decides whether it is still due.
 */
import type { QueueName } from '../core/ids/ids.ts'
import type { Item } from '../core/items/item.ts'
import { isAutomatic, type Queue } from '../core/items/queue.ts'
import { type Clock, type Instant, usPerSecond } from '../core/time/instant.ts'
import type { Engine } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type { LetterCursor, RedriveRefusal, RedriveResult } from '../storage/contract/letters.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import { searchLetters } from '../storage/search/search-letters.ts'
import { createAuditContext, policyAttribution } from './audit.ts'
import { type LettersLog, stepLettersMax } from './parts.ts'
import { countFitting } from './step-size.ts'

const queuesPerRead = 1_000
/** How long the list of automatic queues is cached, and thus how late a changed policy can be noticed. */
const queuesKnownUs = 5 * usPerSecond
/** Wait before a due letter that cannot be sent (for example because its queue is gone) is tried again. */
const stuckRestUs = 60 * usPerSecond
/** Limit for retries of such letters per dead queue: above 30,000 letters, each is tried less often. */
const stuckPerSecondMax = 500
const stuckRestUsMax = 3_600 * usPerSecond

/**
 * How far this server got with the due letters of a dead queue. Only an optimisation, so that a pass does not
 * start from the first letter each time: the store knows whether a letter is due.
 */
type Sweep = {
  /** The last letter that was examined; null: start with the first. */
  after: LetterCursor | null
  /** Letters were sent or postponed since the sweep started. */
  hasChanged: boolean
  /** When the letters that were postponed last become due again. */
  restUntil: Instant
  /** When such letters were last logged. */
  loggedAt: Instant
}
type Stuck = Extract<RedriveResult, { isStarted: false }>

/** `replanned`: queues whose policy changed and whose letters need a new plan. */
type QueueLists = Readonly<{ automatic: readonly string[]; replanned: Set<string>; readAt: Instant }>

export class AutomaticRedrive {
  readonly #storage: StoreReads
  readonly #engine: Pick<Engine, 'write'>
  readonly #clock: Clock
  readonly #log: LettersLog
  readonly #sweeps = new Map<string, Sweep>()
  #queues: QueueLists | undefined

  constructor(
    parts: Readonly<{ storage: StoreReads; engine: Pick<Engine, 'write'>; clock: Clock; log: LettersLog }>,
  ) {
    this.#storage = parts.storage
    this.#engine = parts.engine
    this.#clock = parts.clock
    this.#log = parts.log
  }

  /** Redrives letters that are due, one page per queue; true if more is left. */
  async pass({ isFresh = false }: Readonly<{ isFresh?: boolean }> = {}): Promise<boolean> {
    let isMore = false
    const { automatic, replanned } = await this.#readQueues(isFresh)
    for (const queue of replanned) {
      if (await this.#replan(queue)) isMore = true
      else replanned.delete(queue)
    }
    for (const queue of automatic) {
      if (await this.#redriveDue(queue)) isMore = true
    }
    return isMore
  }

  /** Cached for a few seconds, because it reads all queues. */
  async #readQueues(isFresh: boolean): Promise<QueueLists> {
    const now = this.#clock.now()
    const cached = this.#queues
    const isCurrent = cached !== undefined && now >= cached.readAt && now < cached.readAt + queuesKnownUs
    if (isCurrent && !isFresh) return cached
    const automatic = new Set<string>()
    const replanned = new Set<string>()
    for await (const queue of this.#allQueues()) {
      if (isAutomatic(queue)) automatic.add(queue.name)
      if (queue.replannedUntil !== undefined) replanned.add(queue.name)
    }
    for (const queue of this.#sweeps.keys()) if (!automatic.has(queue)) this.#sweeps.delete(queue)
    this.#queues = { automatic: [...automatic], replanned, readAt: now }
    return this.#queues
  }

  async *#allQueues(): AsyncGenerator<Queue> {
    for (let from: string | undefined; ; ) {
      const queues = await this.#storage.listQueues({
        countMax: queuesPerRead,
        ...(from !== undefined && { from }),
      })
      yield* queues
      const last = queues.at(-1)
      if (last === undefined || queues.length < queuesPerRead) return
      // The smallest possible name after the last one.
      from = `${last.name}\u0001`
    }
  }

  /** Plans the next letters of a queue by its changed policy; true if more are left. */
  async #replan(queue: QueueName): Promise<boolean> {
    const audit = createAuditContext(this.#clock, policyAttribution, 'letter.exhaust', {})
    const command = {
      op: 'replan-redrives',
      queue,
      countMax: stepLettersMax,
      now: this.#clock.now(),
      audit,
    } as const
    try {
      const [{ isMore }] = await this.#engine.write([command])
      return isMore
    } catch (error) {
      // The queue was deleted in the meantime, with its letters.
      if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') return false
      throw error
    }
  }

  /**
   * Postpones letters by a minute, or longer if there are very many, so that they do not all become due at
   * once. Letters without redrives left become DEAD. Returns true if anything changed.
   */
  async #postpone(queue: QueueName, sweep: Sweep, stuck: readonly Stuck[], now: Instant) {
    const paceUs = Math.ceil((stuck.length / stuckPerSecondMax) * usPerSecond)
    const until = Math.min(Math.max(now + stuckRestUs, sweep.restUntil + paceUs), now + stuckRestUsMax)
    const letterIds = stuck.map(({ letterId }) => letterId)
    const audit = createAuditContext(this.#clock, policyAttribution, 'letter.exhaust', {})
    const command = { op: 'postpone-redrives', letterIds, until, now, audit } as const
    const [{ postponed, exhausted }] = await this.#engine.write([command])
    if (postponed === 0) return exhausted > 0
    sweep.restUntil = until
    if (now < sweep.loggedAt + stuckRestUs) return true
    sweep.loggedAt = now
    const refusal = stuck.find((each) => each.refusal !== 'exhausted')?.refusal
    this.#log.warn(
      { queue, letters: postponed, refusal },
      'due letters cannot be redriven; they are tried again later',
    )
    return true
  }

  /** Sends the letters of a page that can be sent and postpones the rest; true if anything changed. */
  async #redrive(queue: QueueName, sweep: Sweep, letters: readonly Item[], now: Instant) {
    if (letters.length === 0) return false
    const sum = { action: 'letters.auto-redrive', target: queue }
    const [redriven] = await this.#engine.write([
      {
        op: 'redrive',
        letters: letters.map(({ rootId }) => ({ letterId: rootId, queue: null })),
        isDeadAllowed: false,
        isCapped: true,
        isDueOnly: true,
        actor: policyAttribution.actor,
        now,
        audit: { ...createAuditContext(this.#clock, policyAttribution, 'letter.redrive', {}), sum },
      },
    ])
    const stuck = redriven.flatMap((each) =>
      each.isStarted || !isPermanentRefusal(each.refusal) ? [] : [each],
    )
    // After a crash here the letters are still due: the next pass tries them again and postpones them.
    const isPostponed = stuck.length > 0 && (await this.#postpone(queue, sweep, stuck, now))
    return isPostponed || redriven.some(({ isStarted }) => isStarted)
  }

  /** Processes the next page of due letters, oldest first; true if there may be more. */
  async #redriveDue(queue: QueueName): Promise<boolean> {
    const sweep = this.#sweeps.get(queue) ?? { after: null, hasChanged: false, restUntil: 0, loggedAt: 0 }
    this.#sweeps.set(queue, sweep)
    const now = this.#clock.now()
    const { found, next } = await searchLetters(this.#storage, {
      filter: { queues: [queue], states: ['waiting', 'scheduled'], dueBy: now },
      order: 'deadLetteredAt',
      isDescending: false,
      countMax: stepLettersMax,
      bytes: 'none',
      ...(sweep.after !== null && { after: sweep.after }),
    })
    const letters = found.map(({ item }) => item)
    const count = await countFitting(
      this.#storage,
      letters.map(({ rootId }) => rootId),
    )
    const hasChanged = (await this.#redrive(queue, sweep, letters.slice(0, count), now)) || sweep.hasChanged
    const isWhole = sweep.after === null
    const last = letters[count - 1]
    const isCut = count < letters.length && last !== undefined
    sweep.after = isCut ? { value: last.deadLetteredAt ?? 0, id: last.id } : next
    sweep.hasChanged = hasChanged && sweep.after !== null
    // Letters before this position may have become due during the sweep, so start again, unless nothing
    // changed.
    return sweep.after !== null || (hasChanged && !isWhole)
  }
}

/** True for refusals that last until a person changes something, not for lost races. */
function isPermanentRefusal(refusal: RedriveRefusal): boolean {
  return refusal === 'no-target' || refusal === 'dead-target' || refusal === 'exhausted'
}
