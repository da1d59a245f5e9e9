/** Produces, leases and kills items until the process is killed. Reports each move before and after it. */
import type { ItemChange } from '../../../src/storage/contract/items.ts'
import { openStorage } from '../../../src/storage/open-storage.ts'
import { bytes, minute } from '../../make.ts'
import { createSeededRandom } from '../../seeded-random.ts'
import { readTask, report, waitForMessage } from './parent-channel.ts'

const task = readTask<{ queue: string; seed: number; startsAt: number; workers: number }>()
const { queue } = task
const { below } = createSeededRandom(task.seed)
report('warm')
await waitForMessage('go')
const storage = await openStorage(task.target)

let now = task.startsAt
let batches = 0
const tick = (us = 1): number => {
  now += us
  return now
}
const movedIds = (changes: readonly ItemChange[]): string[] =>
  changes.flatMap((change) => (change.to === 'moved' ? [change.fromId] : []))

async function produce(expireTimeoutUs: number): Promise<void> {
  const count = 1 + below(6)
  const batch = `${task.seed}.${++batches}`
  const items = Array.from({ length: count }, (_, index) => ({
    payload: bytes(`${batch}.${index}/${count}`),
    expireDeadline: now + expireTimeoutUs,
  }))
  await storage.write([{ op: 'produce', queue, partition: 0, items, now: tick() }])
  report('produced', { batch, count })
}

async function lease(): Promise<readonly string[]> {
  const holders = Array.from({ length: 1 + below(6) }, () => 'worker')
  const [leased] = await storage.write([{ op: 'lease', queue, partition: 0, holders, now: tick() }])
  return leased.map((item) => item.id)
}

async function advance(us: number): Promise<void> {
  report('moving')
  const [{ changes }] = await storage.write([{ op: 'advance', now: tick(us), countMax: 1 + below(20) }])
  report('moved', { ids: movedIds(changes) })
}

async function declareDead(): Promise<void> {
  const items = (await lease()).map((id) => ({ id, availableAt: null, isDead: true, error: null }))
  report('moving')
  const [settled] = await storage.write([{ op: 'retry', queue, partition: 0, items, now: tick() }])
  // The retry is refused if another worker advanced the time past the end of the leases.
  report('moved', { ids: settled.isSettled ? movedIds(settled.changes) : [] })
}

async function work(): Promise<void> {
  for (;;) {
    await produce(below(2) === 0 ? minute : 1_000 * minute)
    const way = below(3)
    if (way === 0) await declareDead()
    else if (way === 1) {
      await lease()
      await advance(2 * minute)
    } else await advance(minute)
  }
}

report('open')
await Promise.all(Array.from({ length: task.workers }, work))
