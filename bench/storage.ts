/**
 * Measures produce, lease and complete through the storage contract, on both stores, with durable settings.
 * The same run measures the rate of fsync on the same disk, which limits a single caller.
 */
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Storage } from '../server/src/storage/contract/storage.ts'
import { openStorage, type StoreTarget } from '../server/src/storage/open-storage.ts'
import { stopServices } from '../tools/services/index.ts'
import type { BenchOptions } from './arguments.ts'
import { startBenchPostgres } from './postgres.ts'
import { type BenchResult, type Measured, measure, selectBest } from './report.ts'

const payload = new Uint8Array(300).fill(0x61)
const shapes = [
  { batch: 1, callers: 1, items: 2_000 },
  { batch: 1, callers: 64, items: 20_000 },
  { batch: 100, callers: 4, items: 60_000 },
  { batch: 1_000, callers: 4, items: 100_000 },
] as const

export async function benchStorage({ rounds, isQuick, log }: BenchOptions): Promise<BenchResult> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'))
  const server = await startBenchPostgres()
  const targets: (readonly [string, StoreTarget])[] = [
    ['SQLite file', { kind: 'sqlite', path: join(folder, 'bench.db') }],
  ]
  if (server.isFound) targets.push(['PostgreSQL', { kind: 'postgres', url: server.url }])
  else log(`PostgreSQL is left out: ${server.reason}`)
  try {
    const measured: Measured[][] = []
    for (let round = 1; round <= rounds; round++) {
      measured.push([await measureFsync(folder)])
      for (const [subject, target] of targets) {
        log(`round ${round} of ${rounds}: ${subject}`)
        const storage = await openStorage(target)
        measured.push(await benchStore(subject, storage, `round-${round}`, isQuick))
        await storage.close()
      }
    }
    return { measured: selectBest(measured), ...(server.isFound && { notes: [server.description] }) }
  } finally {
    await stopServices()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function benchStore(
  subject: string,
  storage: Storage,
  queue: string,
  isQuick: boolean,
): Promise<Measured[]> {
  const now = () => Date.now() * 1000
  const partition = { queue, partition: 0 }
  await storage.write([{ op: 'create-queue', queue: { name: queue }, now: now() }])
  const measured: Measured[] = []
  for (const { batch, callers, items } of shapes) {
    const calls = Math.ceil((isQuick ? items / 10 : items) / batch)
    const shape = { subject, batch, callers, calls }
    const newItems = Array.from({ length: batch }, () => ({ payload }))
    const holders = Array.from({ length: batch }, () => 'bench')
    const leasedIds: (readonly string[])[] = []
    measured.push(
      await measure({ ...shape, operation: 'produce' }, async () => {
        await storage.write([{ op: 'produce', ...partition, items: newItems, now: now() }])
      }),
      await measure({ ...shape, operation: 'lease' }, async () => {
        const [leased] = await storage.write([{ op: 'lease', ...partition, holders, now: now() }])
        leasedIds.push(leased.map((item) => item.id))
      }),
    )
    const leased = leasedIds.reduce((sum, ids) => sum + ids.length, 0)
    if (leased !== calls * batch) throw new Error(`${subject}: leased ${leased} of ${calls * batch}`)
    measured.push(
      await measure({ ...shape, operation: 'complete' }, async () => {
        const [settled] = await storage.write([
          { op: 'complete', ...partition, ids: leasedIds.pop() ?? [], now: now() },
        ])
        if (!settled.isSettled) throw new Error(`${subject}: ${settled.refused.length} items were refused`)
      }),
    )
  }
  const differences = await storage.verify()
  if (differences.length > 0) throw new Error(`${subject}: counts differ: ${JSON.stringify(differences)}`)
  return measured
}

async function measureFsync(folder: string): Promise<Measured> {
  const file = openSync(join(folder, 'fsync'), 'w')
  const call = { subject: 'disk', operation: 'write + fsync', batch: 1, callers: 1, calls: 1_000 }
  const measured = await measure(call, async () => {
    writeSync(file, payload)
    fsyncSync(file)
  })
  closeSync(file)
  return measured
}
