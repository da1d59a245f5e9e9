import type { ItemToImport } from '../../server/src/storage/contract/items.ts'
import type { Storage } from '../../server/src/storage/contract/storage.ts'
import type { Measured } from '../report.ts'
import { quantile } from '../report.ts'
import { chooseQueue, createLetter, deadQueues } from './sample-letters.ts'

export type Fill = Readonly<{
  subject: string
  count: number
  /** All letters died before this time. */
  now: number
  /** Stores all letters in this dead queue, instead of in the queue of each letter. */
  deadQueue?: string
  onProgress(stored: number): void
}>

export const batchItems = 1_000
/** As many concurrent batches as a busy source would send. */
const callers = 4
/**
 * Batches that are created before the clock starts: as many as fit into memory without an effect on the
 * figures.
 */
const batchesPerRound = 50

/**
 * The rate is measured over the whole fill, and for each of this number of parts. The best part counts,
 * because other work on the machine can only slow the benchmark down.
 */
const parts = 10

/** `whole`: the rate of the whole fill; `best`: the rate of the best tenth. */
export type Filled = Readonly<{ whole: Measured; best: Measured }>

type Batch = Readonly<{ queue: string; items: readonly ItemToImport[] }>
type Round = { counted: number; countedMs: number }

/**
 * Stores letters in the order of their death.
 *
 * The clock does not run while letters are created: that costs a fifth as much as storing them, and is not
 * the work of the store. It runs while all callers are busy: from the first stored batch of a round until no
 * batch is left to take. So it measures the sustained rate.
 */
export async function fillWithLetters(storage: Storage, fill: Fill): Promise<Filled> {
  const { count, subject, onProgress } = fill
  const batches = createBatches(fill)
  const times: number[] = []
  const rounds: Round[] = []
  let stored = 0
  const store = async ({ queue, items }: Batch): Promise<number> => {
    const startedAtMs = performance.now()
    await storage.write([{ op: 'import', queue, partition: 0, items, now: fill.now }])
    const endedAtMs = performance.now()
    times.push(endedAtMs - startedAtMs)
    stored += items.length
    onProgress(stored)
    return endedAtMs
  }
  for (;;) {
    const round = takeBatches(batches, batchesPerRound)
    if (round.length === 0) break
    rounds.push(await storeRound(round, store))
  }
  times.sort((left, right) => left - right)
  const whole: Measured = {
    subject,
    operation: 'capture',
    batch: batchItems,
    callers,
    perSecond: computeRate(rounds),
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
  }
  const perSecond = Math.max(whole.perSecond, ...computePartRates(rounds, count))
  const best = { ...whole, operation: 'capture, best tenth', perSecond, p50Ms: null, p99Ms: null }
  return { whole, best }
}

/** `store` resolves with the time at which the batch was stored. */
async function storeRound(batches: Batch[], store: (batch: Batch) => Promise<number>): Promise<Round> {
  const round: Round = { counted: 0, countedMs: 0 }
  let firstStoredAtMs: number | undefined
  let areAllCallersBusy = true
  const runCaller = async (): Promise<void> => {
    for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
      const endedAtMs = await store(batch)
      if (firstStoredAtMs === undefined) firstStoredAtMs = endedAtMs
      else if (areAllCallersBusy) round.counted += batch.items.length
    }
    if (areAllCallersBusy && firstStoredAtMs !== undefined)
      round.countedMs += performance.now() - firstStoredAtMs
    areAllCallersBusy = false
  }
  await Promise.all(Array.from({ length: callers }, runCaller))
  return round
}

/** Each batch belongs to one queue, because each source has its own queue. */
function* createBatches({ count, now, deadQueue }: Fill): Generator<Batch, undefined> {
  const numbersByQueue = new Map<string, number[]>()
  for (const { name } of deadQueues) numbersByQueue.set(deadQueue ?? name, [])
  const createBatch = (queue: string, numbers: readonly number[]): Batch => {
    numbersByQueue.set(queue, [])
    return { queue, items: numbers.map((number) => createLetter(number, count, now)) }
  }
  for (let number = 0; number < count; number++) {
    const queue = deadQueue ?? chooseQueue(number).name
    const numbers = numbersByQueue.get(queue) as number[]
    numbers.push(number)
    if (numbers.length === batchItems) yield createBatch(queue, numbers)
  }
  for (const [queue, numbers] of numbersByQueue) if (numbers.length > 0) yield createBatch(queue, numbers)
}

function takeBatches(batches: Iterator<Batch, undefined>, countMax: number): Batch[] {
  const taken: Batch[] = []
  while (taken.length < countMax) {
    const next = batches.next()
    if (next.done) break
    taken.push(next.value)
  }
  return taken
}

function computePartRates(rounds: readonly Round[], count: number): number[] {
  const roundsPerPart = Math.max(1, Math.round(count / parts / (batchesPerRound * batchItems)))
  const rates = Array.from({ length: Math.floor(rounds.length / roundsPerPart) }, (_, part) =>
    computeRate(rounds.slice(part * roundsPerPart, (part + 1) * roundsPerPart)),
  )
  // The last round may be too short to count anything.
  return rates.filter(Number.isFinite)
}

function computeRate(rounds: readonly Round[]): number {
  const counted = sum(rounds.map((round) => round.counted))
  return (1_000 * counted) / sum(rounds.map((round) => round.countedMs))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
