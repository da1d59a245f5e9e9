/**
 * Sends letters back by themselves, where the policy of their dead queue says so and their time has come. Safe on many
 * servers: whether a letter is still due is decided in the transaction that sends it.
 */
import { type Clock, type Instant, usPerSecond } from '../core/instant.ts'
import { isAutomatic } from '../core/queue.ts'
import type { Engine } from '../engine/engine.ts'
import { KnownError } from '../errors.ts'
import type { LetterCursor, NotSent } from '../storage/letter-store.ts'
import type { Storage } from '../storage/storage.ts'
import { type LettersLog, stepLettersMax } from './parts.ts'
import { noticed } from './redrive.ts'
import { actOf, policyTrace } from './trail.ts'

const queuesPerRead = 1_000
/** So long it may take until a changed policy is seen. */
const queuesKnownUs = 5 * usPerSecond
/** Letters that are due and cannot be sent (their queue is gone) are not tried all the time. */
const stuckRestUs = 60 * usPerSecond

export function createAutoPass(
  parts: Readonly<{ storage: Storage; engine: Pick<Engine, 'noticeItems'>; clock: Clock; log: LettersLog }>,
): (options?: Readonly<{ isFresh?: boolean }>) => Promise<boolean> {
  const { storage, engine, clock, log } = parts
  /** Dead queues with nothing but letters that cannot be sent, and until when they are left alone. */
  const restUntil = new Map<string, Instant>()

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
    known = { automatic, replanned, at: now }
    return known
  }

  /** Tells the next letters of a dead queue that its policy was changed; whether there are more. */
  const replan = async (queue: string): Promise<boolean> => {
    const command = { op: 'replan-redrives', queue, countMax: stepLettersMax, now: clock.now() } as const
    try {
      const [{ isMore }] = await storage.write([command])
      return isMore
    } catch (error) {
      // Deleted meanwhile, with its letters.
      if (error instanceof KnownError && error.code === 'QUEUE_NOT_FOUND') return false
      throw error
    }
  }

  /** One batch of a dead queue, the oldest first; whether there may be more. */
  const redriveDue = async (queue: string): Promise<boolean> => {
    let after: LetterCursor | undefined
    for (;;) {
      const now = clock.now()
      const { letters, next } = await storage.listLetters({
        filter: { queues: [queue], states: ['waiting', 'scheduled'], dueBy: now },
        order: 'diedAt',
        isDescending: false,
        countMax: stepLettersMax,
        lookMax: stepLettersMax * 10,
        bytes: 'none',
        ...(after !== undefined && { after }),
      })
      if (letters.length > 0) {
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
        const started = redriven.filter(({ isStarted }) => isStarted).length
        engine.noticeItems(noticed(redriven))
        if (started > 0) return next !== null
        // Another server sent them, or they cannot be sent: those behind them shall not wait for that.
        const stuck = redriven.flatMap((each) => (each.isStarted || !isForLong(each.why) ? [] : each.why))
        if (stuck.length > 0 && next === null) {
          restUntil.set(queue, now + stuckRestUs)
          log.warn({ queue, letters: stuck.length, why: stuck[0] }, 'letters are due and cannot be sent back')
        }
      }
      if (next === null) return false
      after = next
    }
  }

  return async ({ isFresh = false } = {}) => {
    let isMore = false
    const { automatic, replanned } = await autoQueues(isFresh)
    for (const queue of replanned) {
      if (await replan(queue)) isMore = true
      else replanned.delete(queue)
    }
    for (const queue of automatic) {
      if (clock.now() < (restUntil.get(queue) ?? 0)) continue
      restUntil.delete(queue)
      if (await redriveDue(queue)) isMore = true
    }
    return isMore
  }
}

/** Not because somebody else was quicker: it stays so until a person changes something. */
function isForLong(why: NotSent): boolean {
  return why === 'no-target' || why === 'dead-target' || why === 'exhausted' || why === 'dead'
}
