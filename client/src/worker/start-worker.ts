/**
 * The loop of a worker: lease as much as there is room for, hand it to handlers, report what became of it.
 *
 * Everything it holds is bounded: `concurrency` + `prefetch` items that are leased, and a backlog of items
 * that wait to be reported; when that is full no more are leased. All it starts ends with the stop.
 */
import { backoffMs } from '../backoff.ts'
import type { Client } from '../client.ts'
import { type Clock, rest } from '../clock.ts'
import type { LeasedItem } from '../item.ts'
import type { HeldItem } from './held-item.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { type GivenBack, givenBack } from './outcome.ts'
import { Settler, type Settling } from './settler.ts'
import { isUnknownCall } from './unknown-call.ts'
import type { Handler, TroubleContext, Worker, WorkerCounts, WorkOptions } from './worker.ts'

export type WorkerParts = Readonly<{
  client: Pick<Client, 'lease' | 'cancelLease' | 'complete' | 'retry' | 'extend'>
  clock: Clock
  random: () => number
  queue: string
  handler: Handler
  options: WorkOptions
}>

const leaseBatchMax = 1_000
const backlogMin = 1_000
/** What handlers may take to heed their signal, and the last reports to get through. */
const heedMsMax = 1_000
const reportMsMax = 3_000
/** How often the server is asked to end the last lease call: it may arrive after that, or wait at another server. */
const cancelsMax = 10
const cancelRestMs = 50
const cancelMsMax = 1_000

export function startWorker(parts: WorkerParts): Worker {
  const { client, clock, random, queue, handler, options } = parts
  const { concurrency = 10, prefetch = 0, waitMs = 5_000, backoffMsMax = 5_000 } = options
  const { clientId = `worker-${newId(random)}` } = options
  const backlogMax = Math.max(backlogMin, concurrency)
  const counts = { leased: 0, completed: 0, retried: 0, lost: 0, unknown: 0 }
  const waiting: HeldItem[] = []
  const running = new Set<HeldItem>()
  const leasing = new AbortController()
  const resting = new AbortController()
  let isStopping = false
  let isLeasing = false
  let wake: () => void = () => {}

  /** What a callback throws is not ours to break on. */
  const tell = (say: () => void): void => {
    try {
      say()
    } catch {
      // There is nobody left to tell: it may have been onError itself.
    }
  }
  const onError = (error: unknown, about: TroubleContext): void =>
    tell(() => (options.onError ?? writeTrouble)(error, about))

  const settler = new Settler({
    client,
    clock,
    random,
    queue,
    batchMax: Math.min(Math.max(options.completeBatchMax ?? 200, 1), 1_000),
    lingerMs: options.completeLingerMs ?? 5,
    backoffMsMax,
    onSettled: ({ held, back, thrown }: Settling, outcome) => {
      if (outcome === 'lost') counts.lost++
      else if (outcome === 'unknown') counts.unknown++
      else if (back === null) counts.completed++
      else counts.retried++
      tell(() => {
        if (outcome === 'lost') options.onLost?.(held.item)
        else if (outcome === 'done' && back === null) options.onCompleted?.(held.item)
        else if (outcome === 'done') options.onRetried?.(held.item, thrown)
      })
      wake()
    },
    onError: (error, during) => onError(error, { during }),
  })

  const keeper = new LeaseKeeper({
    client,
    clock,
    queue,
    isExtending: options.isExtending ?? true,
    onLost: (held) => {
      held.isLost = true
      counts.lost++
      held.ending.abort(new Error(`the lease of item ${held.item.id} was lost`))
      const at = waiting.indexOf(held)
      if (at !== -1) waiting.splice(at, 1)
      tell(() => options.onLost?.(held.item))
      wake()
    },
    onError: (error) => onError(error, { during: 'extend' }),
  })

  const run = async (held: HeldItem): Promise<void> => {
    const { item, partition, ending } = held
    let settling: Settling
    try {
      await handler(item, { queue, partition, signal: ending.signal })
      settling = { held, back: null, thrown: undefined }
    } catch (thrown) {
      if (!held.isLost) onError(thrown, { during: 'handler', item })
      settling = { held, back: backOf(item, thrown), thrown }
    }
    running.delete(held)
    keeper.remove(held)
    if (!held.isLost) settler.add(settling)
    fill()
    wake()
  }
  const backOf = (item: LeasedItem, thrown: unknown) => {
    let back: GivenBack = { isDead: false, failure: null }
    tell(() => {
      back = givenBack(thrown, clock.nowMs())
      back = givenBack(thrown, clock.nowMs(), () => options.retryDelayMs?.(item, thrown))
    })
    return back
  }
  const fill = (): void => {
    while (running.size < concurrency) {
      const next = waiting.shift()
      if (next === undefined) return
      running.add(next)
      void run(next)
    }
  }

  /** How many items to ask for. With a prefetch not before half of it is used up: fewer, larger calls. */
  const room = (): number => {
    const free = concurrency + prefetch - running.size - waiting.length
    if (free < Math.max(prefetch / 2, 1)) return 0
    return Math.min(free, backlogMax - settler.size, leaseBatchMax)
  }
  const leaseOnce = async (countMax: number): Promise<void> => {
    const askedAtMs = clock.elapsedMs()
    const call = { clientId, countMax, waitMs, signal: leasing.signal, retriesMax: 0 }
    isLeasing = true
    const { partition, items, leaseMsLeft } = await client.lease(queue, call).finally(() => {
      isLeasing = false
    })
    const leaseEndsAtMs = clock.elapsedMs() + leaseMsLeft
    const held = items.map(
      (item): HeldItem => ({
        item,
        partition,
        ending: new AbortController(),
        leaseEndsAtMs,
        isLost: false,
      }),
    )
    counts.leased += held.length
    keeper.add(held)
    waiting.push(...held)
    fill()
    const isIdle = items.length === 0 && running.size === 0 && settler.size === 0 && !isStopping
    if (isIdle) tell(() => options.onIdle?.())
    // Whoever answers "nothing" without waiting is asked slowly.
    if (items.length === 0 && clock.elapsedMs() < askedAtMs + 10) await rest(clock, 100, resting.signal)
  }
  const leaseLoop = async (): Promise<void> => {
    let failures = 0
    while (!isStopping) {
      const countMax = room()
      if (countMax <= 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      try {
        await leaseOnce(countMax)
        failures = 0
      } catch (error) {
        if (resting.signal.aborted) return
        failures++
        onError(error, { during: 'lease' })
        const restMs = backoffMs({ msMin: 100, msMax: backoffMsMax }, failures, random)
        await rest(clock, restMs, resting.signal).catch(() => {})
      }
    }
  }
  const leased = leaseLoop()

  const isDoneWithin = async (done: Promise<unknown>, ms: number): Promise<boolean> => {
    const late = new AbortController()
    const timer = clock.setTimer(() => late.abort(), ms)
    const isDone = await isDoneBefore(done, late.signal)
    clock.clearTimer(timer)
    return isDone
  }
  const whenHandled = async (): Promise<void> => {
    while (running.size > 0 || waiting.length > 0) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  const hurry = new AbortController()
  /**
   * Has the lease call under way answered now. It is not cut, because the answer may be on its way with
   * items that nobody would know of. Never rejects.
   */
  const endLeaseCall = async (): Promise<void> => {
    const options = { retriesMax: 0, answerMsMax: cancelMsMax, signal: hurry.signal }
    for (let cancels = 1; cancels <= cancelsMax; cancels++) {
      try {
        await client.cancelLease(queue, clientId, options)
      } catch (error) {
        // The call then ends by itself, after `waitMs`.
        if (isUnknownCall(error) || hurry.signal.aborted) return
      }
      if (await isDoneWithin(leased, cancelRestMs * cancels)) return
    }
    // It waits where our word does not reach. What is being leased for it is put back there.
    leasing.abort()
  }
  const finish = async (): Promise<void> => {
    isStopping = true
    resting.abort()
    wake()
    if (isLeasing) void endLeaseCall()
    // The bound of the stop is the timer of each `stop` call, which hurries it.
    if (!(await isDoneBefore(leased, hurry.signal))) leasing.abort()
    await leased
    const handled = whenHandled()
    if (!(await isDoneBefore(handled, hurry.signal))) {
      const why = new Error('the worker stops, and this took longer than its stop allows')
      for (const held of waiting.splice(0)) {
        keeper.remove(held)
        settler.add({ held, back: { isDead: false, failure: null }, thrown: why })
      }
      for (const { ending } of running) ending.abort(why)
      await isDoneWithin(handled, heedMsMax)
    }
    for (const held of running) held.isLost = true
    const reported = settler.whenEmpty()
    if (!(await isDoneBefore(reported, hurry.signal))) await isDoneWithin(reported, reportMsMax)
    keeper.close()
    settler.close()
    options.signal?.removeEventListener('abort', onAbort)
    resolveStopped()
  }

  let resolveStopped: () => void = () => {}
  const stopped = new Promise<void>((resolve) => {
    resolveStopped = resolve
  })
  const stop: Worker['stop'] = async ({ withinMs = 30_000 } = {}) => {
    if (!isStopping) void finish()
    const timer = clock.setTimer(() => hurry.abort(), withinMs)
    await stopped
    clock.clearTimer(timer)
  }
  const onAbort = (): void => void stop()
  if (options.signal?.aborted) onAbort()
  else options.signal?.addEventListener('abort', onAbort, { once: true })

  return {
    clientId,
    stopped,
    stop,
    counts: (): WorkerCounts => ({
      ...counts,
      running: running.size,
      prefetched: waiting.length,
      settling: settler.size,
    }),
  }
}

/** False when the signal aborts first. */
function isDoneBefore(done: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const onAbort = (): void => resolve(false)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    void done.then(() => {
      signal.removeEventListener('abort', onAbort)
      resolve(true)
    })
  })
}

/** Handlers' errors are at the server, with their items. */
function writeTrouble(error: unknown, { during }: TroubleContext): void {
  if (during === 'handler') return
  const message = error instanceof Error ? error.message : String(error)
  console.warn(`redrive worker: ${during} failed, will go on: ${message}`)
}

function newId(random: () => number): string {
  // Not a secret. It only has to differ from those of the other workers of a queue.
  return Array.from({ length: 4 }, () =>
    Math.floor(random() * 36 ** 5)
      .toString(36)
      .padStart(5, '0'),
  ).join('')
}
