/**
 * Measures whether the rate of single calls depends on the number of queues: the same callers work on one
 * queue, on 16 and on 256. With many queues each queue has few callers, so batches can only be large if the
 * store collects the writes of several queues.
 */
import type { BenchOptions, StoreKind } from './arguments.ts'
import { type BenchStores, openBenchStores, storeNames } from './bench-stores.ts'
import { callersMax } from './peers/peer.ts'
import { leaseAndComplete, openRedrive, produceItems } from './peers/redrive.ts'
import { type BenchResult, type Measured, measureItems, type Ratio, selectBest } from './report.ts'

const queueCounts = [1, 16, 256] as const
const itemsDefault = 50_000
const itemsQuick = 5_000
const msMax = 15_000

export async function benchManyQueues(options: BenchOptions): Promise<BenchResult> {
  const { rounds, stores, log } = options
  const items = options.items ?? (options.isQuick ? itemsQuick : itemsDefault)
  await using benchStores = await openBenchStores(stores)
  const measured: Measured[][] = []
  for (let round = 1; round <= rounds; round++) {
    for (const kind of stores) {
      for (const queueCount of queueCounts) {
        log(`round ${round} of ${rounds}: ${storeNames[kind]}, ${formatQueues(queueCount)}`)
        measured.push(await benchStore(benchStores, kind, queueCount, items))
      }
    }
  }
  const best = selectBest(measured)
  return {
    measured: best,
    ratios: stores.flatMap((kind) => compareWithOneQueue(best, kind)),
    notes: benchStores.notes,
  }
}

async function benchStore(
  benchStores: BenchStores,
  kind: StoreKind,
  queueCount: number,
  items: number,
): Promise<Measured[]> {
  const store = await benchStores.create(kind)
  const names = Array.from({ length: queueCount }, (_, index) => `bench-${index}`)
  const { engine, close } = await openRedrive(
    store.target,
    names.map((name) => ({ name })),
  )
  const nameFor = (caller: number) => names[caller % names.length] as string
  try {
    const what = { subject: formatSubject(kind, queueCount), batch: 1, callers: callersMax }
    const produced = await measureItems(
      { ...what, operation: 'produce' },
      { items, msMax },
      async (caller) => {
        await produceItems(engine, nameFor(caller), 1)
        return 1
      },
    )
    const completed = await measureItems(
      { ...what, operation: 'lease+complete' },
      { items: items - callersMax, msMax },
      (caller, signal) => leaseAndComplete(engine, { queue: nameFor(caller), caller, countMax: 1, signal }),
    )
    return [produced, completed]
  } finally {
    await close()
    await store.remove()
  }
}

function compareWithOneQueue(measured: readonly Measured[], kind: StoreKind): Ratio[] {
  const [single, ...others] = queueCounts.map((queueCount) => formatSubject(kind, queueCount))
  return others.flatMap((subject) =>
    measured
      .filter((one) => one.subject === subject)
      .flatMap(({ operation, batch, perSecond }) => {
        const compared = measured.find((one) => one.subject === single && one.operation === operation)
        if (compared === undefined) return []
        return [
          {
            subject,
            operation,
            batch,
            against: 'one queue',
            times: perSecond / compared.perSecond,
            aim: null,
          },
        ]
      }),
  )
}

function formatSubject(kind: StoreKind, queueCount: number): string {
  return `${storeNames[kind]}, ${formatQueues(queueCount)}`
}

function formatQueues(count: number): string {
  return count === 1 ? '1 queue' : `${count} queues`
}
