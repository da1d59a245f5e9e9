/**
 * Measures how fast millions of dead letters are captured, counted, listed, searched, redriven and archived,
 * and how much a busy queue in the same store slows down.
 */
import { createLetters } from '../server/src/letters/create-letters.ts'
import { createLetterLoops } from '../server/src/letters/loops.ts'
import { createSystemClock } from '../server/src/system-clock.ts'
import type { BenchOptions, StoreKind } from './arguments.ts'
import { type BenchStore, openBenchStores, storeNames } from './bench-stores.ts'
import { checkDiskSpace } from './letters/check-disk-space.ts'
import { fillWithLetters } from './letters/fill-with-letters.ts'
import { measurePlainCopy, measurePlainMove } from './letters/plain-sql.ts'
import {
  measureCalls,
  measureCounts,
  measureExport,
  measurePages,
  measureSearches,
  type ReadBench,
} from './letters/reads.ts'
import { getQueueShare, queues } from './letters/sample-letters.ts'
import {
  createCampaignSpec,
  measureArchive,
  measureCampaign,
  mixStates,
  runWorkload,
} from './letters/writes.ts'
import { type OpenedRedrive, openRedrive } from './peers/redrive.ts'
import {
  type BenchResult,
  formatRatios,
  formatTimes,
  type Measured,
  type Ratio,
  type Timed,
} from './report.ts'
import { runSql } from './run-sql.ts'

const lettersDefault: Readonly<Record<StoreKind, number>> = { postgres: 5_000_000, sqlite: 1_000_000 }
const lettersQuick = 50_000
const usPerDay = 24 * 3600 * 1_000_000
const captureAim = 30_000
const campaignAim = 10_000
/** Each campaign redrives the letters of this number of days. The best of several counts. */
const campaignDays = 2
const busyCallers = 64
/**
 * The queue runs alone and beside the others alternately, because the load of the machine changes over time.
 */
const alternations = 6
const aloneMs = 4_000
/** Longer than the pause of retention after a batch, so that the measurement includes its work. */
const besideMs = 8_000
const warmUpMs = 1_000
/** A rate that an operator would choose for a campaign that must not disturb a busy system. */
const besideRate = 1_000
const besideLetters = (2 * alternations * (warmUpMs + besideMs) * besideRate) / 1_000

export async function benchLetters(options: BenchOptions): Promise<BenchResult> {
  const counts = options.stores.map((kind) => ({
    kind,
    letters: options.letters ?? (options.isQuick ? lettersQuick : lettersDefault[kind]),
  }))
  for (const { kind, letters } of counts) checkDiskSpace(kind, letters)
  await using benchStores = await openBenchStores(options.stores, { isWarmedUp: !options.isQuick })
  const results: BenchResult[] = []
  for (const { kind, letters } of counts) {
    const store = await benchStores.create(kind)
    results.push(await benchStore(store, kind, letters, options))
    await store.remove()
  }
  return {
    measured: results.flatMap(({ measured }) => measured),
    timed: results.flatMap(({ timed }) => timed ?? []),
    ratios: results.flatMap(({ ratios }) => ratios ?? []),
    notes: [...benchStores.notes, ...results.flatMap(({ notes }) => notes ?? [])],
  }
}

type StoreBench = Readonly<{
  subject: string
  store: BenchStore
  count: number
  now: number
  opened: OpenedRedrive
  letters: ReturnType<typeof createLetters>
  clock: ReturnType<typeof createSystemClock>
  isQuick: boolean
  log(line: string): void
}>
type Figures = Required<Pick<BenchResult, 'measured' | 'timed' | 'ratios' | 'notes'>>

async function benchStore(
  store: BenchStore,
  kind: StoreKind,
  count: number,
  { isQuick, log }: BenchOptions,
): Promise<BenchResult> {
  const subject = `${storeNames[kind]}, ${count.toLocaleString('en-US')} letters`
  const clock = createSystemClock()
  const now = clock.now()
  const opened = await openRedrive(store.target, [...queues, { name: 'live' }])
  const { storage, engine } = opened
  // `keepUs: 0` makes ended letters due immediately, so that retention has work beside the busy queue.
  const retention = { keepUs: 0, archiveUs: 365 * usPerDay }
  const letters = createLetters({ storage, engine, clock, retention })
  const bench: StoreBench = { subject, store, count, now, opened, letters, clock, isQuick, log }

  const figures = [
    await measureCapture(bench),
    await measureReads(bench),
    await measureCampaigns(bench),
    await measureRetention(bench),
    await measureBeside(bench),
  ]
  await verify(opened)
  await letters.close()
  await opened.close()
  return {
    measured: figures.flatMap(({ measured }) => measured),
    timed: figures.flatMap(({ timed }) => timed),
    ratios: figures.flatMap(({ ratios }) => ratios),
    notes: [
      ...figures.flatMap(({ notes }) => notes),
      `${subject}: verify() found no differences at the end.`,
    ],
  }
}

const noFigures: Figures = { measured: [], timed: [], ratios: [], notes: [] }

async function measureCapture({ subject, store, count, now, opened, log }: StoreBench): Promise<Figures> {
  const { storage } = opened
  let logged = 0
  const onProgress = (stored: number) => {
    if (stored < logged + count / 10) return
    logged = stored
    log(`${subject}: ${Math.round((100 * stored) / count)} % captured`)
  }
  const { whole, best } = await fillWithLetters(storage, { subject, count, now, onProgress })
  const aimNote = describeAim(whole, best, captureAim)
  log(aimNote)
  const measured = [whole, best]
  const ratios: Ratio[] = []
  if (store.target.kind === 'postgres') {
    const copy = await measurePlainCopy(`${subject}: plain SQL`, store.target.url)
    measured.push(copy)
    ratios.push(compareRates(best, copy, 'plain COPY from files', null))
  }
  await mixStates(storage, Math.min(20_000, Math.ceil(count / 200)), now)
  await vacuum(store)
  await verify(opened)
  const gigabytes = ((await store.sizeBytes()) / 1e9).toFixed(1)
  const notes = [
    aimNote,
    `${subject}: letters were created in rounds, while the clock was stopped.`,
    `${subject}: ${gigabytes} GB; verify() found no differences.`,
  ]
  return { ...noFigures, measured, ratios, notes }
}

async function measureReads(bench: StoreBench): Promise<Figures> {
  const { subject, store, count, now, opened, isQuick, log } = bench
  log(`${subject}: counts, pages, searches`)
  const reads: ReadBench = { subject, storage: opened.storage, now, count, calls: isQuick ? 10 : 200 }
  const counted = await measureCounts(reads)
  const timed = [...counted, ...(await measurePages(reads)), ...(await measureSearches(reads))]
  const exported: Measured = {
    subject,
    operation: 'export of whole letters',
    batch: 500,
    callers: 1,
    perSecond: await measureExport(reads),
    p50Ms: null,
    p99Ms: null,
  }
  // Log intermediate results: the run takes half an hour, and a later step may fail.
  log(formatTimes(timed))
  if (store.target.kind !== 'postgres') return { ...noFigures, timed, measured: [exported] }
  const ratios = [await compareWithGroupBy(reads, store.target.url, counted[0])]
  return { ...noFigures, timed, measured: [exported], ratios }
}

async function measureCampaigns({ subject, now, letters, log }: StoreBench): Promise<Figures> {
  log(`${subject}: a campaign`)
  const campaigns: Measured[] = []
  for (let day = 28; day > 20; day -= campaignDays) {
    const died = { from: now - day * usPerDay, until: now - (day - campaignDays) * usPerDay - 1 }
    const selection = { queues: ['mails-dead'], states: ['waiting'], died }
    campaigns.push(await measureCampaign(subject, letters, createCampaignSpec(selection, 0)))
  }
  const [whole, best] = summarizeCampaigns(campaigns)
  const aimNote = describeAim(whole, best, campaignAim)
  log(aimNote)
  return { ...noFigures, measured: [whole, best], notes: [aimNote] }
}

async function measureRetention({ subject, store, opened, clock, log }: StoreBench): Promise<Figures> {
  log(`${subject}: archive`)
  const plain = await measurePlainMove(`${subject}: plain SQL`, store, 'orders-dead')
  const archived = await measureArchive(subject, opened.storage, 'orders-dead', clock.now())
  const ratios = [compareRates(archived, plain, 'plain SQL move', 0.6)]
  log(formatRatios(ratios))
  return { ...noFigures, measured: [plain, archived], ratios }
}

function compareRates(one: Measured, other: Measured, against: string, aim: number | null): Ratio {
  const { subject, operation, batch } = one
  return { subject, operation, batch, against, times: one.perSecond / other.perSecond, aim }
}

/** Compares the counts with a `group by` over the rows; the best of two runs. */
async function compareWithGroupBy(reads: ReadBench, url: string, counted: Timed | undefined): Promise<Ratio> {
  const text = 'select queue_id, state, count(*) from redrive.items_sourced group by queue_id, state'
  const grouped = await measureCalls({ ...reads, calls: 2 }, 'group by', null, () => runSql(url, [text]))
  return {
    subject: reads.subject,
    operation: 'count by queue and status',
    batch: 1,
    against: 'GROUP BY over the rows',
    times: grouped.p50Ms / (counted?.p50Ms ?? Number.NaN),
    aim: null,
  }
}

/**
 * Measures a busy queue alone, and beside a campaign and retention in the loops of a server. Retention
 * archives the ended letters of the queues that were not archived before.
 */
async function measureBeside(bench: StoreBench): Promise<Figures> {
  const { subject, opened, letters, log } = bench
  const { engine, storage } = opened
  log(`${subject}: a busy queue, alone and beside retention and a campaign`)
  const { id } = await startBesideCampaign(bench)
  const readProgress = async () => ({
    archived: (await storage.readCounts({})).reduce((sum, counts) => sum + counts.archived, 0),
    sent: (await letters.campaigns.get(id))?.counts.sent ?? 0,
  })
  await runWorkload(engine, 'live', busyCallers, aloneMs)
  const rates = { alone: 0, beside: 0 }
  const done = { archived: 0, sent: 0 }
  for (let alternation = 0; alternation < alternations; alternation++) {
    rates.alone += await runWorkload(engine, 'live', busyCallers, aloneMs)
    const before = await readProgress()
    const loops = startLoops(letters)
    // After the pause, the campaign first sends the letters of a whole second at once.
    await runWorkload(engine, 'live', busyCallers, warmUpMs)
    rates.beside += await runWorkload(engine, 'live', busyCallers, besideMs)
    const after = await readProgress()
    await loops.stop()
    done.archived += after.archived - before.archived
    done.sent += after.sent - before.sent
  }
  const progress = `${done.archived} archived, ${done.sent} sent`
  if (done.archived === 0 || done.sent === 0) {
    throw new Error(`nothing ran beside the busy queue, so the ratio is meaningless: ${progress}`)
  }
  const times = rates.beside / rates.alone
  const operation = 'produce+lease+complete beside retention and a campaign'
  const seconds = (warmUpMs + besideMs) / 1_000
  return {
    ...noFigures,
    ratios: [{ subject, operation, batch: 1, against: 'alone', times, aim: 0.8 }],
    notes: [`${subject}: beside the busy queue, in ${alternations} times ${seconds} s: ${progress}.`],
  }
}

/** Selects about twice as many letters as can be sent: freezing millions would take the whole measurement. */
function startBesideCampaign({ count, now, letters }: StoreBench): Promise<Readonly<{ id: string }>> {
  const days = Math.min(13, (30 * besideLetters) / (count * getQueueShare('stock-dead')))
  const died = { from: Math.round(now - (5 + days) * usPerDay), until: now - 5 * usPerDay }
  const selection = { queues: ['stock-dead'], states: ['waiting'], died }
  const attribution = { actor: 'bench', reason: 'benchmark', requestId: '' }
  return letters.campaigns.create(createCampaignSpec(selection, besideRate), attribution)
}

function startLoops(letters: StoreBench['letters']): Readonly<{ stop(): Promise<void> }> {
  const loops = createLetterLoops(
    () => letters,
    { autoMs: 1_000, campaignsMs: 500, retentionMs: 3_600_000 },
    (pass, error) => {
      throw new Error(`${pass} failed`, { cause: error })
    },
  )
  loops.start()
  return loops
}

/** A production database of this size has been vacuumed long before. */
async function vacuum({ target }: BenchStore): Promise<void> {
  if (target.kind === 'postgres') await runSql(target.url, ['vacuum (analyze)', 'checkpoint'])
}

async function verify({ storage }: OpenedRedrive): Promise<void> {
  const differences = await storage.verify()
  if (differences.length > 0) throw new Error(`counts differ: ${JSON.stringify(differences)}`)
}

function describeAim({ subject, operation, perSecond }: Measured, best: Measured, aim: number): string {
  const [whole, most, least] = [perSecond, best.perSecond, aim].map((rate) =>
    Math.round(rate).toLocaleString('en-US'),
  )
  const verdict = best.perSecond >= aim ? 'met' : 'missed'
  return `${subject}: ${operation} ${whole}/s on the whole, ${most}/s at best, aim ${least}: ${verdict}`
}

/** All campaigns have about the same number of letters. */
function summarizeCampaigns(campaigns: readonly Measured[]): readonly [whole: Measured, best: Measured] {
  const sorted = campaigns.toSorted((left, right) => right.perSecond - left.perSecond)
  const [best] = sorted
  if (best === undefined) throw new Error('there was no campaign')
  const secondsEach = sorted.map(({ perSecond }) => 1 / perSecond)
  const perSecond = sorted.length / secondsEach.reduce((sum, seconds) => sum + seconds, 0)
  return [
    { ...best, perSecond },
    { ...best, operation: `${best.operation}, best of ${sorted.length}` },
  ]
}
