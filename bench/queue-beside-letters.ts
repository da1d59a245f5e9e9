/**
 * Measures single produces, and single leases with completes, in a store without dead letters and in a store
 * with millions of them: for a queue with these letters in its own dead queue, and for another queue.
 *
 * Both stores have the same two queues. Each queue is compared with the same queue of the other store,
 * because two queues of one store differ in speed even without letters. The measurements alternate in short
 * slices, so that other work on the machine affects all of them.
 */
import type { NewQueue } from '../server/src/core/items/queue.ts'
import { createSystemClock } from '../server/src/system-clock.ts'
import type { BenchOptions, StoreKind } from './arguments.ts'
import { type BenchStore, type BenchStores, openBenchStores, storeNames } from './bench-stores.ts'
import { checkDiskSpace } from './letters/check-disk-space.ts'
import { fillWithLetters } from './letters/fill-with-letters.ts'
import { callersMax } from './peers/peer.ts'
import { leaseAndComplete, type OpenedRedrive, openRedrive, produceItems } from './peers/redrive.ts'
import { type BenchResult, type Measured, Meter, type Ratio, selectBest } from './report.ts'
import { runSql } from './run-sql.ts'

const itemsDefault = 100_000
const lettersDefault: Readonly<Record<StoreKind, number>> = { postgres: 5_000_000, sqlite: 1_000_000 }
const lettersQuick = 100_000
const msMax = 60_000
/** The number of slices of each figure. */
const slices = 10
const aim = 0.9

const queue = 'bench'
const otherQueue = 'bench-other'
const queues: readonly NewQueue[] = [queue, otherQueue].flatMap((name) => [
  { name: toDeadQueueName(name) },
  { name, deadQueue: toDeadQueueName(name) },
])

export async function benchQueueBesideLetters(options: BenchOptions): Promise<BenchResult> {
  const counts = options.stores.map((kind) => ({
    kind,
    letters: options.letters ?? (options.isQuick ? lettersQuick : lettersDefault[kind]),
  }))
  // Fail before the benchmark starts, not after minutes.
  for (const { kind, letters } of counts) checkDiskSpace(kind, letters)
  await using benchStores = await openBenchStores(options.stores)
  const measured: Measured[] = []
  const ratios: Ratio[] = []
  const notes: string[] = [...benchStores.notes]
  for (const { kind, letters } of counts) {
    const result = await measureStore(benchStores, kind, letters, options)
    measured.push(...result.measured)
    ratios.push(...(result.ratios ?? []))
    notes.push(...(result.notes ?? []))
  }
  return { measured, ratios, notes }
}

type QueueUnderTest = Readonly<{
  subject: string
  /** The subject with the same queue in the store without letters; undefined for that subject itself. */
  against: string | undefined
  benchStore: BenchStore
  opened: OpenedRedrive
  queue: string
}>

async function measureStore(
  benchStores: BenchStores,
  kind: StoreKind,
  letters: number,
  { rounds, isQuick, items = isQuick ? itemsDefault / 10 : itemsDefault, log }: BenchOptions,
): Promise<BenchResult> {
  const store = storeNames[kind]
  const [empty, filled] = [await benchStores.create(kind), await benchStores.create(kind)]
  const stored = await fill(filled, letters, (line) => log(`${store}: ${line}`))
  const inEmpty = await openRedrive(empty.target, queues)
  const inFilled = await openRedrive(filled.target)
  const subjects: readonly QueueUnderTest[] = [queue, otherQueue].flatMap((name) => {
    const label = `${store}, ${name === queue ? 'own dead queue' : 'dead queue beside it'}`
    const against = `${label}: empty`
    const subject = `${label}: ${formatCount(letters)} letters`
    return [
      { subject: against, against: undefined, benchStore: empty, opened: inEmpty, queue: name },
      { subject, against, benchStore: filled, opened: inFilled, queue: name },
    ]
  })
  // The first round would otherwise include the compilation of the code.
  log(`${store}: warming up`)
  await measureRound(subjects, items)
  const measured: Measured[][] = []
  for (let round = 1; round <= rounds; round++) {
    log(`${store}: round ${round} of ${rounds}`)
    measured.push(await measureRound(subjects, items))
  }
  for (const opened of [inEmpty, inFilled]) {
    await verify(opened)
    await opened.close()
  }
  for (const benchStore of [empty, filled]) await benchStore.remove()
  const best = selectBest(measured)
  return {
    measured: best,
    ratios: computeRatios(subjects, best),
    notes: [
      `${store}: ${stored}; verify() found no differences before and after.`,
      ...computeRatios(subjects, best).map(
        ({ subject, operation }) =>
          `${subject}, ${operation}: round by round ${formatRounds(subjects, measured, subject, operation)}`,
      ),
    ],
  }
}

function computeRatios(subjects: readonly QueueUnderTest[], measured: readonly Measured[]): Ratio[] {
  return measured.flatMap((one) => {
    const { subject, operation, batch, perSecond } = one
    const against = subjects.find((underTest) => underTest.subject === subject)?.against
    const other = measured.find((each) => each.subject === against && each.operation === operation)
    if (against === undefined || other === undefined) return []
    return [{ subject, operation, batch, against, times: perSecond / other.perSecond, aim }]
  })
}

/** If these differ a lot, the machine was busy and the ratio of the best rounds is not reliable. */
function formatRounds(
  subjects: readonly QueueUnderTest[],
  rounds: readonly (readonly Measured[])[],
  subject: string,
  operation: string,
): string {
  return rounds
    .flatMap((round) => computeRatios(subjects, round))
    .filter((one) => one.subject === subject && one.operation === operation)
    .map(({ times }) => times.toFixed(2))
    .join(', ')
}

async function fill(benchStore: BenchStore, letters: number, log: (line: string) => void): Promise<string> {
  const startedAt = performance.now()
  const filling = await openRedrive(benchStore.target, queues)
  let logged = 0
  const onProgress = (stored: number) => {
    if (stored < logged + letters / 10) return
    logged = stored
    log(`${Math.round((100 * stored) / letters)} % of ${formatCount(letters)} letters`)
  }
  const now = createSystemClock().now()
  const deadQueue = toDeadQueueName(queue)
  await fillWithLetters(filling.storage, { subject: '', count: letters, now, deadQueue, onProgress })
  await filling.close()
  const { target } = benchStore
  // A production database of this size has been vacuumed long before.
  if (target.kind === 'postgres') await runSql(target.url, ['vacuum (analyze) redrive.items_sourced'])
  const seconds = (performance.now() - startedAt) / 1000

  const opened = await openRedrive(target)
  await verify(opened)
  const [counts] = await opened.storage.readCounts({ queue: toDeadQueueName(queue) })
  if (counts?.waiting !== letters) throw new Error(`${counts?.waiting} letters instead of ${letters}`)
  await opened.close()
  const gigabytes = ((await benchStore.sizeBytes()) / 1e9).toFixed(1)
  const line = `${formatCount(letters)} letters, ${gigabytes} GB, stored in ${Math.round(seconds)} s`
  log(`${line}; verify() found no differences`)
  return line
}

async function measureRound(subjects: readonly QueueUnderTest[], items: number): Promise<Measured[]> {
  for (const benchStore of new Set(subjects.map(({ benchStore }) => benchStore))) await vacuum(benchStore)
  const produced = await measureAlternating(subjects, 'produce', items, async ({ opened, queue }) => {
    await produceItems(opened.engine, queue, 1)
    return 1
  })
  // Calls in progress at the end of a slice are completed but not counted: add items for them.
  for (const { opened, queue } of subjects) await produceItems(opened.engine, queue, slices * callersMax)
  const consumed = await measureAlternating(
    subjects,
    'lease+complete',
    items,
    ({ opened, queue }, caller, signal) =>
      leaseAndComplete(opened.engine, { queue, caller, countMax: 1, signal }),
  )
  for (const { opened, queue } of subjects) {
    await opened.engine.clear(queue, { isWaiting: true, isScheduled: false, isLeased: false })
  }
  return subjects.flatMap((_, index) => [produced[index] as Measured, consumed[index] as Measured])
}

async function measureAlternating(
  subjects: readonly QueueUnderTest[],
  operation: string,
  items: number,
  call: (underTest: QueueUnderTest, caller: number, signal: AbortSignal) => Promise<number>,
): Promise<Measured[]> {
  const meters = subjects.map(
    ({ subject }) => new Meter({ subject, operation, batch: 1, callers: callersMax }),
  )
  const bound = { items: Math.ceil(items / slices), msMax }
  for (let slice = 0; slice < slices; slice++) {
    for (const position of subjects.keys()) {
      // Rotate the order, so that each subject is sometimes first and follows every other.
      const index = (position + slice) % subjects.length
      const underTest = subjects[index] as QueueUnderTest
      await meters[index]?.run(bound, (caller, signal) => call(underTest, caller, signal))
    }
  }
  return meters.map(({ measured }) => measured)
}

/** The next round must not pay for writes and dead rows that the previous one left. */
async function vacuum({ target }: BenchStore): Promise<void> {
  if (target.kind !== 'postgres') return
  await runSql(target.url, [
    'vacuum (analyze) redrive.items_live, redrive.counts, redrive.partitions',
    'checkpoint',
  ])
}

async function verify({ storage }: OpenedRedrive): Promise<void> {
  const differences = await storage.verify()
  if (differences.length > 0) throw new Error(`counts differ: ${JSON.stringify(differences)}`)
}

function toDeadQueueName(name: string): string {
  return `${name}-dead`
}

function formatCount(count: number): string {
  return count.toLocaleString('en-US')
}
