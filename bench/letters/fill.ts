/** Puts millions of dead letters into a store the way they come from elsewhere: captured, in batches. */
import type { ImportedItem, Storage } from '../../server/src/storage/storage.ts'
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

type Batch = Readonly<{ queue: string; items: readonly ImportedItem[] }>

/**
 * In the order of their death; gives the rate over all of them. The clock stands still while letters are made: that
 * costs a fifth as much as storing them does, and is no work of the store. It runs while all callers are busy, from the
 * first batch of a round that is stored until there is none left to take: what counts is the rate that is kept up.
 */
export async function fillWithLetters(storage: Storage, fill: Fill): Promise<Measured> {
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
  let counted = 0
  let countedMs = 0
  for (let made = makeAhead(); made.length > 0; made = makeAhead()) {
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
        else if (isFull) counted += items.length
        stored += items.length
        onProgress(stored)
      }
      if (isFull && runsSince !== undefined) countedMs += performance.now() - runsSince
      isFull = false
    }
    await Promise.all(Array.from({ length: callers }, worker))
  }
  times.sort((left, right) => left - right)
  return {
    subject,
    operation: 'capture',
    batch: batchItems,
    callers,
    perSecond: (1_000 * counted) / countedMs,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
  }
}
