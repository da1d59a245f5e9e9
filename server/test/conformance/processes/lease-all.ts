/** Leases all items with many concurrent leasers, and reports the ids of each batch. */
import { openStorage } from '../../../src/storage/open-storage.ts'
import { noon } from '../../make.ts'
import { readTask, report, waitForMessage } from './parent-channel.ts'

const task = readTask<{ queue: string; leasers: number; batchMax: number; index: number }>()
const storage = await openStorage(task.target)
report('ready')
await waitForMessage('go')
const lease = async (leaser: number): Promise<void> => {
  const holders = Array.from({ length: task.batchMax }, () => `leaser-${task.index}-${leaser}`)
  for (;;) {
    const command = { op: 'lease', queue: task.queue, partition: 0, holders, now: noon } as const
    const [leased] = await storage.write([command])
    if (leased.length === 0) return
    report('leased', { ids: leased.map((item) => item.id) })
  }
}
await Promise.all(Array.from({ length: task.leasers }, (_, index) => lease(index)))
await storage.close()
process.exit(0)
