/**
 * Single produces and single leases with completes in a store without dead letters, and in one with
 * millions of them: by a queue that has them in its own dead queue, and by one beside it.
 *
 * Both stores have the same two queues and are used alike, and each queue is compared with the same one in
 * the other store: two queues of one store are not equally fast, letters or not. They take short turns,
 * so that what else the machine does hits all of them.
 */
import type { NewQueue } from '../server/src/core/queue.ts'
import { createSystemClock } from '../server/src/system-clock.ts'
import type { BenchOptions, StoreKind } from './arguments.ts'
import { checkRoom } from './letters/check-room.ts'
import { fillWithLetters } from './letters/fill.ts'
import { callersMax } from './peers/peer.ts'
import { leaseAndComplete, type OpenedRedrive, openRedrive, produceItems } from './peers/redrive.ts'
import { openPlaces, type Place, type Places, storeNames } from './places.ts'
import { type BenchResult, bestOf, type Measured, Meter, type Ratio } from './report.ts'
import { runSql } from './run-sql.ts'

const itemsDefault = 100_000
const lettersDefault: Readonly<Record<StoreKind, number>> = { postgres: 5_000_000, sqlite: 1_000_000 }
const lettersQuick = 100_000
const msMax = 60_000
/** Into how many turns a figure is divided. */
const turns = 10
const aim = 0.9

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
  const notes: string[] = [...places.notes]
  for (const { kind, letters } of counts) {
    const result = await benchStore(places, kind, letters, options)
    measured.push(...result.measured)
    ratios.push(...(result.ratios ?? []))
    notes.push(...(result.notes ?? []))
  }
  return { measured, ratios, notes }
}

type Stand = Readonly<{
  subject: string
  /** The same queue in the store without letters; undefined for that one itself. */
  against: string | undefined
  place: Place
  opened: OpenedRedrive
  queue: string
}>

async function benchStore(
  places: Places,
  kind: StoreKind,
  letters: number,
  { rounds, isQuick, items = isQuick ? itemsDefault / 10 : itemsDefault, say }: BenchOptions,
): Promise<BenchResult> {
  const store = storeNames[kind]
  const [empty, filled] = [await places.create(kind), await places.create(kind)]
  const stored = await fill(filled, letters, (line) => say(`${store}: ${line}`))
  const inEmpty = await openRedrive(empty.target, queues)
  const inFilled = await openRedrive(filled.target)
  const stands: readonly Stand[] = [queue, otherQueue].flatMap((name) => {
    const whose = `${store}, ${name === queue ? 'own dead queue' : 'dead queue beside it'}`
    const against = `${whose}: empty`
    const subject = `${whose}: ${written(letters)} letters`
    return [
      { subject: against, against: undefined, place: empty, opened: inEmpty, queue: name },
      { subject, against, place: filled, opened: inFilled, queue: name },
    ]
  })
  // So that the first round does not pay for code that is compiled while it runs.
  say(`${store}: warming up`)
  await measureRound(stands, items)
  const measured: Measured[][] = []
  for (let round = 1; round <= rounds; round++) {
    say(`${store}: round ${round} of ${rounds}`)
    measured.push(await measureRound(stands, items))
  }
  for (const opened of [inEmpty, inFilled]) {
    await verify(opened)
    await opened.close()
  }
  for (const place of [empty, filled]) await place.remove()
  const best = bestOf(measured)
  return {
    measured: best,
    ratios: ratiosOf(stands, best),
    notes: [
      `${store}: ${stored}; verify() found nothing wrong before and after.`,
      ...ratiosOf(stands, best).map(
        ({ subject, operation }) =>
          `${subject}, ${operation}: round by round ${eachRound(stands, measured, subject, operation)}`,
      ),
    ],
  }
}

function ratiosOf(stands: readonly Stand[], measured: readonly Measured[]): Ratio[] {
  return measured.flatMap((one) => {
    const { subject, operation, batch, perSecond } = one
    const against = stands.find((stand) => stand.subject === subject)?.against
    const other = measured.find((each) => each.subject === against && each.operation === operation)
    if (against === undefined || other === undefined) return []
    return [{ subject, operation, batch, against, times: perSecond / other.perSecond, aim }]
  })
}

/** Where these lie far apart the machine was busy, and the ratio of the best says little. */
function eachRound(
  stands: readonly Stand[],
  rounds: readonly (readonly Measured[])[],
  subject: string,
  operation: string,
): string {
  return rounds
    .flatMap((round) => ratiosOf(stands, round))
    .filter((one) => one.subject === subject && one.operation === operation)
    .map(({ times }) => times.toFixed(2))
    .join(', ')
}

async function fill(place: Place, letters: number, say: (line: string) => void): Promise<string> {
  const startedAt = performance.now()
  const made = await openRedrive(place.target, queues)
  let said = 0
  const onProgress = (stored: number) => {
    if (stored < said + letters / 10) return
    said = stored
    say(`${Math.round((100 * stored) / letters)} % of ${written(letters)} letters`)
  }
  const now = createSystemClock().now()
  const deadQueue = deadQueueOf(queue)
  await fillWithLetters(made.storage, { subject: '', count: letters, now, deadQueue, onProgress })
  await made.close()
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

async function measureRound(stands: readonly Stand[], items: number): Promise<Measured[]> {
  for (const place of new Set(stands.map(({ place }) => place))) await settleDown(place)
  const produced = await takeTurns(stands, 'produce', items, async ({ opened, queue }) => {
    await produceItems(opened.engine, queue, 1)
    return 1
  })
  // What is under way when a turn ends is done but not counted: there must be enough for the last turn.
  for (const { opened, queue } of stands) await produceItems(opened.engine, queue, turns * callersMax)
  const consumed = await takeTurns(stands, 'lease+complete', items, ({ opened, queue }, caller, signal) =>
    leaseAndComplete(opened.engine, { queue, caller, countMax: 1, signal }),
  )
  for (const { opened, queue } of stands) {
    await opened.engine.clear(queue, { isWaiting: true, isScheduled: false, isLeased: false })
  }
  return stands.flatMap((_, index) => [produced[index] as Measured, consumed[index] as Measured])
}

async function takeTurns(
  stands: readonly Stand[],
  operation: string,
  items: number,
  call: (stand: Stand, caller: number, signal: AbortSignal) => Promise<number>,
): Promise<Measured[]> {
  const meters = stands.map(({ subject }) => new Meter({ subject, operation, batch: 1, callers: callersMax }))
  const bound = { items: Math.ceil(items / turns), msMax }
  for (let turn = 0; turn < turns; turn++) {
    for (const place of stands.keys()) {
      // Everybody is sometimes the first, and comes after everybody else.
      const index = (place + turn) % stands.length
      const stand = stands[index] as Stand
      await meters[index]?.run(bound, (caller, signal) => call(stand, caller, signal))
    }
  }
  return meters.map(({ measured }) => measured)
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

function deadQueueOf(name: string): string {
  return `${name}-dead`
}

function written(count: number): string {
  return count.toLocaleString('en-US')
}
