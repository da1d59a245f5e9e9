/**
 * Sends letters back by themselves, where the policy of their dead queue says so and their time has come. Safe on many
 * servers: whether a letter is still due is decided in the transaction that sends it.
 */
import { type Clock, type Instant, usPerSecond } from '../core/instant.ts'
import type { Item } from '../core/item.ts'
import { isAutomatic } from '../core/queue.ts'
import type { Engine } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type { LetterCursor, RedriveRefusal, RedriveResult } from '../storage/contract/letters.ts'
import type { Storage } from '../storage/contract/storage.ts'
import { actOf, policyTrace } from './audit.ts'
import { type LettersLog, stepLettersMax } from './parts.ts'
import { noticed } from './redrive.ts'
import { countTogether } from './step-size.ts'

const queuesPerRead = 1_000
/** So long it may take until a changed policy is seen. */
const queuesKnownUs = 5 * usPerSecond
/** Letters that are due and cannot be sent (their queue is gone) are not tried all the time. */
const stuckRestUs = 60 * usPerSecond
/** Nor so many of a dead queue that it would have nothing else to do: beyond 30,000 each is tried more rarely. */
const stuckPerSecondMax = 500
const stuckRestUsMax = 3_600 * usPerSecond

/**
 * How far this server got with the due letters of a dead queue. Only so that it need not begin anew each time: whether
 * a letter is due, and when again, is in the store.
 */
type Sweep = {
  /** The last letter that was looked at; null: it begins. */
  after: LetterCursor | null
  /** Some were sent or put off since it began. */
  hasChanged: boolean
  /** When those are due again that were put off last. */
  restUntil: Instant
  /** When the log was last told of such letters. */
  toldAt: Instant
}
type Stuck = Extract<RedriveResult, { isStarted: false }>

export function createAutoPass(
  parts: Readonly<{ storage: Storage; engine: Pick<Engine, 'noticeItems'>; clock: Clock; log: LettersLog }>,
): (options?: Readonly<{ isFresh?: boolean }>) => Promise<boolean> {
  const { storage, engine, clock, log } = parts
  const sweeps = new Map<string, Sweep>()

  /** `replanned`: whose policy was changed, and whose letters are to be told. */
  type Known = Readonly<{ automatic: readonly string[]; replanned: Set<string>; at: Instant }>
  let known: Known | undefined

  /** The dead queues whose policy says so; all queues are read for that, so not with every pass. */
  const autoQueues = async (isFresh: boolean): Promise<Known> => {
    const now = clock.now()
    if (!isFresh && known !== undefined && now >= known.at && now < known.at + queuesKnownUs) return known
    const automatic: string[] = []
    const replanned = new Set<string>()
    let from: string | undefined
    for (;;) {
      const queues = await storage.listQueues({
        countMax: queuesPerRead,
        ...(from !== undefined && { from }),
      })
      for (const queue of queues) {
        if (isAutomatic(queue)) automatic.push(queue.name)
        if (queue.replannedUntil !== undefined) replanned.add(queue.name)
      }
      const last = queues.at(-1)
      if (last === undefined || queues.length < queuesPerRead) break
      // The smallest name after it.
      from = `${last.name}\u0001`
    }
    const current = new Set(automatic)
    for (const queue of sweeps.keys()) if (!current.has(queue)) sweeps.delete(queue)
    known = { automatic, replanned, at: now }
    return known
  }

  /** Tells the next letters of a dead queue that its policy was changed; whether there are more. */
  const replan = async (queue: string): Promise<boolean> => {
    const trace = actOf(clock, policyTrace, 'letter.exhaust', {})
    const command = {
      op: 'replan-redrives',
      queue,
      countMax: stepLettersMax,
      now: clock.now(),
      trace,
    } as const
    try {
      const [{ isMore }] = await storage.write([command])
      return isMore
    } catch (error) {
      // Deleted meanwhile, with its letters.
      if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') return false
      throw error
    }
  }

  /**
   * They are due again in a minute; of very many some later, so that they are not due all at once again. What used up its
   * redrives is DEAD. Whether anything changed.
   */
  const postpone = async (queue: string, sweep: Sweep, stuck: readonly Stuck[], now: Instant) => {
    const paceUs = Math.ceil((stuck.length / stuckPerSecondMax) * usPerSecond)
    const until = Math.min(Math.max(now + stuckRestUs, sweep.restUntil + paceUs), now + stuckRestUsMax)
    const letterIds = stuck.map(({ letterId }) => letterId)
    const trace = actOf(clock, policyTrace, 'letter.exhaust', {})
    const command = { op: 'postpone-redrives', letterIds, until, now, trace } as const
    const [{ postponed, exhausted }] = await storage.write([command])
    if (postponed === 0) return exhausted > 0
    sweep.restUntil = until
    if (now < sweep.toldAt + stuckRestUs) return true
    sweep.toldAt = now
    const why = stuck.find((each) => each.why !== 'exhausted')?.why
    log.warn({ queue, letters: postponed, why }, 'letters are due and cannot be sent back')
    return true
  }

  /** Sends what can be sent of one page, and puts the rest off; whether anything came of it. */
  const redrive = async (queue: string, sweep: Sweep, letters: readonly Item[], now: Instant) => {
    if (letters.length === 0) return false
    const sum = { action: 'letters.auto-redrive', target: queue }
    const [redriven] = await storage.write([
      {
        op: 'redrive',
        letters: letters.map(({ rootId }) => ({ letterId: rootId, queue: null })),
        isDeadAllowed: false,
        isCapped: true,
        isDueOnly: true,
        actor: policyTrace.actor,
        now,
        trace: { ...actOf(clock, policyTrace, 'letter.redrive', {}), sum },
      },
    ])
    engine.noticeItems(noticed(redriven))
    const stuck = redriven.flatMap((each) => (each.isStarted || !isForLong(each.why) ? [] : [each]))
    // Killed before that, they are still due: somebody tries again, and then puts them off.
    const isPutOff = stuck.length > 0 && (await postpone(queue, sweep, stuck, now))
    return isPutOff || redriven.some(({ isStarted }) => isStarted)
  }

  /** The next page of a dead queue, the oldest first; whether there may be more. */
  const redriveDue = async (queue: string): Promise<boolean> => {
    const sweep = sweeps.get(queue) ?? { after: null, hasChanged: false, restUntil: 0, toldAt: 0 }
    sweeps.set(queue, sweep)
    const now = clock.now()
    const { letters, next } = await storage.listLetters({
      filter: { queues: [queue], states: ['waiting', 'scheduled'], dueBy: now },
      order: 'diedAt',
      isDescending: false,
      countMax: stepLettersMax,
      lookMax: stepLettersMax * 10,
      bytes: 'none',
      ...(sweep.after !== null && { after: sweep.after }),
    })
    const count = await countTogether(
      storage,
      letters.map(({ rootId }) => rootId),
    )
    const hasChanged = (await redrive(queue, sweep, letters.slice(0, count), now)) || sweep.hasChanged
    const isWhole = sweep.after === null
    const last = letters[count - 1]
    const isCut = count < letters.length && last !== undefined
    sweep.after = isCut ? { value: last.diedAt ?? 0, id: last.id } : next
    sweep.hasChanged = hasChanged && sweep.after !== null
    // What came due meanwhile before its place is looked for at once; but where nothing changes not over and over.
    return sweep.after !== null || (hasChanged && !isWhole)
  }

  return async ({ isFresh = false } = {}) => {
    let isMore = false
    const { automatic, replanned } = await autoQueues(isFresh)
    for (const queue of replanned) {
      if (await replan(queue)) isMore = true
      else replanned.delete(queue)
    }
    for (const queue of automatic) {
      if (await redriveDue(queue)) isMore = true
    }
    return isMore
  }
}

/** Not because somebody else was quicker: it stays so until a person changes something. */
function isForLong(why: RedriveRefusal): boolean {
  return why === 'no-target' || why === 'dead-target' || why === 'exhausted'
}
