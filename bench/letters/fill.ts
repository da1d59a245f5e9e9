import type { ItemToImport } from '../../server/src/storage/contract/items.ts'
import type { Storage } from '../../server/src/storage/contract/storage.ts'
import type { Measured } from '../report.ts'
import { quantile } from '../report.ts'
import { deadQueues, madeLetter, queueOf } from './made.ts'

export type Fill = Readonly<{
  subject: string
  count: number
  /** All letters die before then. */
  now: number
  /** All into this dead queue, instead of each into its own. */
  deadQueue?: string
  onProgress(stored: number): void
}>

export const batchItems = 1_000
/** As many batches as a busy source would have under way. */
const callers = 4
/** Batches that are made before the clock runs, and then stored: as many as fit into memory without being felt. */
const madeAhead = 50

/** The rate is told of the whole fill and of the best of so many parts of it: other work on the machine only ever slows us down. */
const parts = 10

/** `whole`: as fast as all of it went; `best`: as fast as the best tenth. */
export type Filled = Readonly<{ whole: Measured; best: Measured }>

type Batch = Readonly<{ queue: string; items: readonly ItemToImport[] }>

/**
 * In the order of their death. The clock stands still while letters are made: that
 * costs a fifth as much as storing them does, and is no work of the store. It runs while all callers are busy, from the
 * first batch of a round that is stored until there is none left to take: what counts is the rate that is kept up.
 */
export async function fillWithLetters(storage: Storage, fill: Fill): Promise<Filled> {
  const { count, now, subject, deadQueue, onProgress } = fill
  const waiting = new Map<string, number[]>()
  for (const { name } of deadQueues) waiting.set(deadQueue ?? name, [])
  const times: number[] = []
  let next = 0
  let stored = 0
  /** Each batch is of one queue, as each source has its own. */
  const takeBatch = (): Readonly<{ queue: string; numbers: number[] }> | undefined => {
    while (next < count) {
      const name = deadQueue ?? queueOf(next).name
      const numbers = waiting.get(name) as number[]
      if (numbers.push(next++) < batchItems) continue
      waiting.set(name, [])
      return { queue: name, numbers }
    }
    for (const [queue, numbers] of waiting) {
      if (numbers.length === 0) continue
      waiting.set(queue, [])
      return { queue, numbers }
    }
    return undefined
  }
  const makeAhead = (): Batch[] => {
    const made: Batch[] = []
    while (made.length < madeAhead) {
      const batch = takeBatch()
      if (batch === undefined) break
      made.push({
        queue: batch.queue,
        items: batch.numbers.map((number) => madeLetter(number, count, now)),
      })
    }
    return made.reverse()
  }
  const roundsPerPart = Math.max(1, Math.round(count / parts / (madeAhead * batchItems)))
  const rounds: { counted: number; countedMs: number }[] = []
  for (let made = makeAhead(); made.length > 0; made = makeAhead()) {
    const round = { counted: 0, countedMs: 0 }
    rounds.push(round)
    let runsSince: number | undefined
    let isFull = true
    const worker = async (): Promise<void> => {
      for (let batch = made.pop(); batch !== undefined; batch = made.pop()) {
        const { queue, items } = batch
        const began = performance.now()
        await storage.write([{ op: 'import', queue, partition: 0, items, now }])
        const endedAt = performance.now()
        times.push(endedAt - began)
        if (runsSince === undefined) runsSince = endedAt
        else if (isFull) round.counted += items.length
        stored += items.length
        onProgress(stored)
      }
      if (isFull && runsSince !== undefined) round.countedMs += performance.now() - runsSince
      isFull = false
    }
    await Promise.all(Array.from({ length: callers }, worker))
  }
  times.sort((left, right) => left - right)
  const rateOf = (some: typeof rounds): number => {
    const [counted, ms] = [sum(some.map((each) => each.counted)), sum(some.map((each) => each.countedMs))]
    return (1_000 * counted) / ms
  }
  const whole: Measured = {
    subject,
    operation: 'capture',
    batch: batchItems,
    callers,
    perSecond: rateOf(rounds),
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
  }
  const rates = Array.from({ length: Math.floor(rounds.length / roundsPerPart) }, (_, part) =>
    rateOf(rounds.slice(part * roundsPerPart, (part + 1) * roundsPerPart)),
  )
  // A last round may be too short to count anything.
  const perSecond = Math.max(whole.perSecond, ...rates.filter(Number.isFinite))
  const best = { ...whole, operation: 'capture, best tenth', perSecond, p50Ms: null, p99Ms: null }
  return { whole, best }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
