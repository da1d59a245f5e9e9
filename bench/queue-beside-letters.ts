/**
 * Single produces and single leases with completes in a store without dead letters, and in one with
 * millions of them: in another dead queue, and in the dead queue of the very queue that is measured.
 *
 * They take turns, so that what else the machine does hits all of them alike.
 */
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { NewQueue } from '../server/src/core/queue.ts'
import type { BenchOptions, StoreKind } from './arguments.ts'
import { CannotRun } from './cannot-run.ts'
import { fillWithLetters } from './letters.ts'
import { callersMax } from './peers/peer.ts'
import { leaseAndComplete, type OpenedRedrive, openRedrive, produceItems } from './peers/redrive.ts'
import { openPlaces, type Place, type Places, runSql, storeNames } from './places.ts'
import { type BenchResult, bestOf, type Measured, measureItems, type Ratio } from './report.ts'

const itemsDefault = 100_000
const lettersDefault: Readonly<Record<StoreKind, number>> = { postgres: 5_000_000, sqlite: 1_000_000 }
const lettersQuick = 100_000
const msMax = 60_000
const aim = 0.9
/** A letter with its share of the indexes, and a fifth more. The rest is the database's log and the live items. */
const bytesPerLetter: Readonly<Record<StoreKind, number>> = { postgres: 1_700, sqlite: 1_300 }
const spareBytes = 3_000_000_000

const queue = 'bench'
const otherQueue = 'bench-other'
const queues: readonly NewQueue[] = [queue, otherQueue].flatMap((name) => [
  { name: deadQueueOf(name) },
  { name, deadQueue: deadQueueOf(name) },
])

export async function benchQueueBesideLetters(options: BenchOptions): Promise<BenchResult> {
  const counts = options.stores.map((kind) => ({
    kind,
    letters: options.letters ?? (options.isQuick ? lettersQuick : lettersDefault[kind]),
  }))
  // Said at once, not after minutes.
  for (const { kind, letters } of counts) checkRoom(kind, letters)
  await using places = await openPlaces(options.stores)
  const measured: Measured[] = []
  const ratios: Ratio[] = []
  const notes: string[] = []
  for (const { kind, letters } of counts) {
    const result = await benchStore(places, kind, letters, options)
    measured.push(...result.measured)
    ratios.push(...(result.ratios ?? []))
    notes.push(...(result.notes ?? []))
  }
  return { measured, ratios, notes }
}

type Stand = Readonly<{ subject: string; place: Place; opened: OpenedRedrive; queue: string }>

async function benchStore(
  places: Places,
  kind: StoreKind,
  letters: number,
  { rounds, isQuick, items = isQuick ? itemsDefault / 10 : itemsDefault, say }: BenchOptions,
): Promise<BenchResult> {
  const [empty, filled] = [await places.create(kind), await places.create(kind)]
  const inEmpty = await openRedrive(empty.target, queues)
  const stored = await fill(filled, letters, (line) => say(`${storeNames[kind]}: ${line}`))
  const inFilled = await openRedrive(filled.target)
  const [none, beside, behind] = [
    `${storeNames[kind]}, no letters`,
    `${storeNames[kind]}, ${written(letters)} letters of another queue`,
    `${storeNames[kind]}, ${written(letters)} letters of this queue`,
  ] as const
  const stands: readonly Stand[] = [
    { subject: none, place: empty, opened: inEmpty, queue },
    { subject: beside, place: filled, opened: inFilled, queue: otherQueue },
    { subject: behind, place: filled, opened: inFilled, queue },
  ]
  // So that the first one measured does not pay for code that is compiled while it runs.
  for (const stand of stands) await measureStand(stand, Math.ceil(items / 10))
  const measured: Measured[][] = []
  for (let round = 1; round <= rounds; round++) {
    for (const stand of stands) {
      say(`round ${round} of ${rounds}: ${stand.subject}`)
      measured.push(await measureStand(stand, items))
    }
  }
  for (const opened of [inEmpty, inFilled]) {
    await verify(opened)
    await opened.close()
  }
  for (const place of [empty, filled]) await place.remove()
  const best = bestOf(measured)
  return {
    measured: best,
    ratios: best.flatMap((one) => {
      const against = best.find(({ subject, operation }) => subject === none && operation === one.operation)
      if (against === undefined || against === one) return []
      const times = one.perSecond / against.perSecond
      const { subject, operation, batch } = one
      return [{ subject, operation, batch, against: none, times, aim }]
    }),
    notes: [`${storeNames[kind]}: ${stored}; verify() found nothing wrong before and after.`],
  }
}

async function fill(place: Place, letters: number, say: (line: string) => void): Promise<string> {
  const startedAt = performance.now()
  const made = await openRedrive(place.target, queues)
  await made.close()
  let said = 0
  const onProgress = (stored: number) => {
    if (stored < said + letters / 10) return
    said = stored
    say(`${Math.round((100 * stored) / letters)} % of ${written(letters)} letters`)
  }
  await fillWithLetters(place, { count: letters, queue, deadQueue: deadQueueOf(queue), onProgress })
  const { target } = place
  // By the time there are so many of them, a database has long done this by itself.
  if (target.kind === 'postgres') await runSql(target.url, ['vacuum (analyze) redrive.items_sourced'])
  const seconds = (performance.now() - startedAt) / 1000

  const opened = await openRedrive(target)
  await verify(opened)
  const [counts] = await opened.storage.counts({ queue: deadQueueOf(queue) })
  if (counts?.waiting !== letters) throw new Error(`${counts?.waiting} letters instead of ${letters}`)
  await opened.close()
  const gigabytes = ((await place.sizeBytes()) / 1e9).toFixed(1)
  const line = `${written(letters)} letters, ${gigabytes} GB, stored in ${Math.round(seconds)} s`
  say(`${line}; verify() finds nothing wrong`)
  return line
}

async function measureStand({ subject, place, opened, queue }: Stand, items: number): Promise<Measured[]> {
  const { engine } = opened
  await settleDown(place)
  const what = { subject, batch: 1, callers: callersMax }
  const bound = { items, msMax }
  const produced = await measureItems({ ...what, operation: 'produce' }, bound, async () => {
    await produceItems(engine, queue, 1)
    return 1
  })
  const consumed = await measureItems({ ...what, operation: 'lease+complete' }, bound, (caller, signal) =>
    leaseAndComplete(engine, { queue, caller, countMax: 1, signal }),
  )
  // The few that were under way when the last one was counted.
  await engine.clear(queue, { isWaiting: true, isScheduled: false, isLeased: false })
  return [produced, consumed]
}

/** So that nobody pays for what the one before left to be written, or to be cleaned up. */
async function settleDown({ target }: Place): Promise<void> {
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

function checkRoom(kind: StoreKind, letters: number): void {
  const { bavail, bsize } = statfsSync(tmpdir())
  const neededBytes = letters * bytesPerLetter[kind] + spareBytes
  if (bavail * bsize >= neededBytes) return
  const gigabytes = (bytes: number) => (bytes / 1e9).toFixed(1)
  throw new CannotRun(
    `${written(letters)} letters in ${storeNames[kind]} need about ${gigabytes(neededBytes)} GB, and ${tmpdir()} has ` +
      `${gigabytes(bavail * bsize)} GB left: ask for fewer with --letters, or name another folder with TMPDIR`,
  )
}

function deadQueueOf(name: string): string {
  return `${name}-dead`
}

function written(count: number): string {
  return count.toLocaleString('en-US')
}
