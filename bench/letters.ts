/**
 * Millions of dead letters: how fast they are captured, counted, listed, searched, sent back and archived, and
 * what a busy queue beside them notices of it.
 */

import { createLetters } from '../server/src/letters/create-letters.ts'
import { createLetterLoops } from '../server/src/letters/loops.ts'
import { createSystemClock } from '../server/src/system-clock.ts'
import type { BenchOptions, StoreKind } from './arguments.ts'
import { timeBareCopy, timeBareMove } from './letters/bare.ts'
import { checkRoom } from './letters/check-room.ts'
import { fillWithLetters } from './letters/fill.ts'
import { queueShare, queues } from './letters/made.ts'
import { type Stand, time, timeCounts, timePages, timeSearches } from './letters/reads.ts'
import { campaignOf, keepBusy, mixStates, timeArchive, timeCampaign } from './letters/writes.ts'
import { type OpenedRedrive, openRedrive } from './peers/redrive.ts'
import { openPlaces, type Place, storeNames } from './places.ts'
import {
  type BenchResult,
  type Measured,
  type Ratio,
  ratioTableOf,
  type Timed,
  timedTableOf,
} from './report.ts'
import { runSql } from './run-sql.ts'

const lettersDefault: Readonly<Record<StoreKind, number>> = { postgres: 5_000_000, sqlite: 1_000_000 }
const lettersQuick = 50_000
const usPerDay = 24 * 3600 * 1_000_000
const captureAim = 30_000
const campaignAim = 10_000
/** Several after each other, each of the letters of so many days: other work on the machine only ever slows us down. */
const campaignDays = 2
const busyCallers = 64
/** Alone and beside in turns: what else the machine does changes from minute to minute. */
const turns = 6
const aloneMs = 4_000
/** Longer than retention rests after a batch: the least time that shows what both cost. */
const besideMs = 8_000
const warmUpMs = 1_000
/** A rate at which somebody would send back what a busy system must not notice. */
const besideRate = 1_000
const besideLetters = (2 * turns * (warmUpMs + besideMs) * besideRate) / 1_000

export async function benchLetters(options: BenchOptions): Promise<BenchResult> {
  const counts = options.stores.map((kind) => ({
    kind,
    letters: options.letters ?? (options.isQuick ? lettersQuick : lettersDefault[kind]),
  }))
  for (const { kind, letters } of counts) checkRoom(kind, letters)
  await using places = await openPlaces(options.stores, { isSeasoned: !options.isQuick })
  const results: BenchResult[] = []
  for (const { kind, letters } of counts) {
    const place = await places.create(kind)
    results.push(await benchStore(place, kind, letters, options))
    await place.remove()
  }
  return {
    measured: results.flatMap(({ measured }) => measured),
    timed: results.flatMap(({ timed }) => timed ?? []),
    ratios: results.flatMap(({ ratios }) => ratios ?? []),
    notes: [...places.notes, ...results.flatMap(({ notes }) => notes ?? [])],
  }
}

async function benchStore(
  place: Place,
  kind: StoreKind,
  count: number,
  { isQuick, say }: BenchOptions,
): Promise<BenchResult> {
  const subject = `${storeNames[kind]}, ${count.toLocaleString('en-US')} letters`
  const clock = createSystemClock()
  const now = clock.now()
  const opened = await openRedrive(place.target, [...queues, { name: 'live' }])
  const { storage, engine } = opened
  // What ended is due at once: so retention has work to do beside the busy queue.
  const letters = createLetters({
    storage,
    engine,
    clock,
    retention: { keepUs: 0, archiveUs: 365 * usPerDay },
  })
  const measured: Measured[] = []
  const timed: Timed[] = []
  const ratios: Ratio[] = []
  const notes: string[] = []
  const note = (line: string) => {
    notes.push(line)
    say(line)
  }

  let said = 0
  const onProgress = (stored: number) => {
    if (stored < said + count / 10) return
    said = stored
    say(`${subject}: ${Math.round((100 * stored) / count)} % captured`)
  }
  const captured = await fillWithLetters(storage, { subject, count, now, onProgress })
  measured.push(captured.whole, captured.best)
  note(aimNote(captured.whole, captured.best, captureAim))
  notes.push(`${subject}: letters were made in rounds, while the clock stood still.`)
  if (place.target.kind === 'postgres') {
    const bare = await timeBareCopy(`${subject}: the bare SQL`, place.target.url)
    measured.push(bare)
    ratios.push(ratioOf(captured.best, bare, 'the bare COPY from files', null))
  }
  await mixStates(storage, Math.min(20_000, Math.ceil(count / 200)), now)
  await settleDown(place)
  await verify(opened)
  notes.push(`${subject}: ${((await place.sizeBytes()) / 1e9).toFixed(1)} GB; verify() found nothing wrong.`)

  say(`${subject}: counts, pages, searches`)
  const stand: Stand = { subject, storage, now, count, calls: isQuick ? 10 : 200 }
  const counted = await timeCounts(stand)
  timed.push(...counted, ...(await timePages(stand)), ...(await timeSearches(stand)))
  if (place.target.kind === 'postgres') ratios.push(await againstGroupBy(stand, place.target.url, counted[0]))
  // Half an hour's work: should something fail later, this was said.
  say(timedTableOf(timed))

  say(`${subject}: a campaign`)
  const campaigns: Measured[] = []
  for (let day = 28; day > 20; day -= campaignDays) {
    const died = { from: now - day * usPerDay, until: now - (day - campaignDays) * usPerDay - 1 }
    const selection = { queues: ['mails-dead'], states: ['waiting'], died }
    campaigns.push(await timeCampaign(subject, letters, campaignOf(selection, 0)))
  }
  const [wholeCampaign, bestCampaign] = wholeAndBest(campaigns)
  measured.push(wholeCampaign, bestCampaign)
  note(aimNote(wholeCampaign, bestCampaign, campaignAim))

  say(`${subject}: archive`)
  const bare = await timeBareMove(`${subject}: the bare SQL`, place, 'orders-dead')
  const archived = await timeArchive(subject, storage, 'orders-dead', clock.now())
  measured.push(bare, archived)
  ratios.push(ratioOf(archived, bare, 'the bare SQL move', 0.6))
  say(ratioTableOf(ratios))

  say(`${subject}: a busy queue, alone and beside retention and a campaign`)
  const besides = await beside(subject, opened, letters, count, now)
  ratios.push(besides.ratio)
  notes.push(besides.note)
  await verify(opened)
  notes.push(`${subject}: verify() found nothing wrong at the end.`)
  await letters.close()
  await opened.close()
  return { measured, timed, ratios, notes }
}

function ratioOf(ours: Measured, theirs: Measured, against: string, aim: number | null): Ratio {
  const { subject, operation, batch } = ours
  return { subject, operation, batch, against, times: ours.perSecond / theirs.perSecond, aim }
}

/** The count as the seed has it, over the rows; the best of two. */
async function againstGroupBy(stand: Stand, url: string, counted: Timed | undefined): Promise<Ratio> {
  const text = 'select queue_id, state, count(*) from redrive.items_sourced group by queue_id, state'
  const grouped = await time({ ...stand, calls: 2 }, 'group by', null, () => runSql(url, [text]))
  return {
    subject: stand.subject,
    operation: 'count by queue and status',
    batch: 1,
    against: 'GROUP BY over the rows',
    times: grouped.p50Ms / (counted?.p50Ms ?? Number.NaN),
    aim: null,
  }
}

/** With the loops that a server has. Retention moves what ended in the queues that were not archived before. */
async function beside(
  subject: string,
  { engine, storage }: OpenedRedrive,
  letters: ReturnType<typeof createLetters>,
  count: number,
  now: number,
): Promise<Readonly<{ ratio: Ratio; note: string }>> {
  // About twice as many as can be sent meanwhile: of millions it would be busy freezing them all the time.
  const days = Math.min(13, (30 * besideLetters) / (count * queueShare('stock-dead')))
  const died = { from: Math.round(now - (5 + days) * usPerDay), until: now - 5 * usPerDay }
  const selection = { queues: ['stock-dead'], states: ['waiting'], died }
  const trace = { actor: 'bench', reason: 'benchmark', requestId: '' }
  const { id } = await letters.campaigns.create(campaignOf(selection, besideRate), trace)
  const progress = async () => ({
    archived: (await storage.counts({})).reduce((sum, counts) => sum + counts.archived, 0),
    sent: (await letters.campaigns.get(id))?.counts.sent ?? 0,
  })
  await keepBusy(engine, 'live', busyCallers, aloneMs)
  const rates = { alone: 0, beside: 0 }
  const done = { archived: 0, sent: 0 }
  for (let turn = 0; turn < turns; turn++) {
    rates.alone += await keepBusy(engine, 'live', busyCallers, aloneMs)
    const loops = createLetterLoops(
      () => letters,
      { autoMs: 1_000, campaignsMs: 500, retentionMs: 3_600_000 },
      (pass, error) => {
        throw new Error(`${pass} failed`, { cause: error })
      },
    )
    const before = await progress()
    loops.start()
    // A campaign makes up for the pause with a second's worth of letters.
    await keepBusy(engine, 'live', busyCallers, warmUpMs)
    rates.beside += await keepBusy(engine, 'live', busyCallers, besideMs)
    const after = await progress()
    await loops.stop()
    done.archived += after.archived - before.archived
    done.sent += after.sent - before.sent
  }
  if (done.archived === 0 || done.sent === 0) {
    throw new Error(
      `beside the busy queue ${done.archived} letters were archived, ${done.sent} sent: it shows nothing`,
    )
  }
  const times = rates.beside / rates.alone
  const operation = 'produce+lease+complete beside retention and a campaign'
  const ratio = { subject, operation, batch: 1, against: 'alone', times, aim: 0.8 }
  return {
    ratio,
    note: `${subject}: beside the busy queue, in ${turns} turns of ${(warmUpMs + besideMs) / 1_000} s: ${done.archived} archived, ${done.sent} sent.`,
  }
}

async function settleDown({ target }: Place): Promise<void> {
  // By the time there are so many of them, a database has long done this by itself.
  if (target.kind === 'postgres') await runSql(target.url, ['vacuum (analyze)', 'checkpoint'])
}

async function verify({ storage }: OpenedRedrive): Promise<void> {
  const differences = await storage.verify()
  if (differences.length > 0) throw new Error(`counts differ: ${JSON.stringify(differences)}`)
}

function aimNote({ subject, operation, perSecond }: Measured, best: Measured, aim: number): string {
  const [whole, most, least] = [perSecond, best.perSecond, aim].map((rate) =>
    Math.round(rate).toLocaleString('en-US'),
  )
  return `${subject}: ${operation} ${whole}/s on the whole, ${most}/s at best, aim ${least}: ${best.perSecond >= aim ? 'met' : 'missed'}`
}

/** All are about equally many letters. */
function wholeAndBest(campaigns: readonly Measured[]): readonly [whole: Measured, best: Measured] {
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
