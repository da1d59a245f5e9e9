/** The process that queue-memory.ts measures: Redrive, its callers, and a look at the memory now and then. */
import { setMaxListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Worker } from 'node:worker_threads'
import type { StoreTarget } from '../server/src/storage/open-storage.ts'
import { leaseAndComplete, openRedrive, produceItems } from './peers/redrive.ts'
import type { MemorySample } from './report.ts'

export type Flow = Readonly<{
  target: StoreTarget
  items: number
  sampleEvery: number
  callers: number
  /** Who would produce more than this ahead of the leasers waits. */
  backlogMax: number
}>
export type FromFlow =
  | Readonly<{ kind: 'sample'; sample: Omit<MemorySample, 'storeBytes'> }>
  | Readonly<{ kind: 'done'; perSecond: number }>

const queue = 'bench'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const threads = new Set<Worker>()
process.on('worker', (thread) => {
  threads.add(thread)
  thread.once('exit', () => threads.delete(thread))
})

const { target, items, sampleEvery, callers, backlogMax } = JSON.parse(process.argv[2] ?? '{}') as Flow
const { engine, storage, close } = await openRedrive(target, [{ name: queue }])
const over = new AbortController()
setMaxListeners(0, over.signal)
/** Producers that wait for the backlog to shrink. */
const held: (() => void)[] = []
let produced = 0
let completed = 0
let sampledAt = 0

const startedAt = performance.now()
await Promise.all(
  Array.from({ length: callers }, (_, caller) => (caller % 2 === 0 ? keepProducing() : keepLeasing(caller))),
)
const seconds = (performance.now() - startedAt) / 1000
const differences = await storage.verify()
if (differences.length > 0) throw new Error(`counts differ: ${JSON.stringify(differences)}`)
await close()
tell({ kind: 'done', perSecond: completed / seconds }, () => process.exit(0))

async function keepProducing(): Promise<void> {
  while (produced < items) {
    if (produced - completed >= backlogMax) {
      await new Promise<void>((resolve) => held.push(resolve))
      continue
    }
    produced++
    await produceItems(engine, queue, 1)
  }
}

async function keepLeasing(caller: number): Promise<void> {
  while (completed < items) {
    const count = await leaseAndComplete(engine, { queue, caller, countMax: 1, signal: over.signal })
    completed += count
    for (let each = 0; each < count; each++) held.pop()?.()
    if (completed - sampledAt >= sampleEvery || (count > 0 && completed === items)) await sample()
    if (completed >= items) over.abort()
  }
}

/** The flow goes on meanwhile: what 256 calls have in hand is little, and always there. */
async function sample(): Promise<void> {
  sampledAt += sampleEvery
  const at = completed
  let threadHeapsBytes = 0
  let threadsOutsideBytes = 0
  for (const thread of threads) {
    // A thread collects its garbage when, and only when, it is asked for a snapshot of its heap.
    ;(await thread.getHeapSnapshot()).destroy()
    const heap = await thread.getHeapStatistics()
    threadHeapsBytes += heap.used_heap_size
    threadsOutsideBytes += heap.external_memory
  }
  collectGarbage()
  // What the first collection gave to finalizers is gone after the second.
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  const { heapUsed, external, rss } = process.memoryUsage()
  tell({
    kind: 'sample',
    sample: {
      items: at,
      heapBytes: heapUsed,
      threadHeapsBytes,
      outsideBytes: external + threadsOutsideBytes,
      rssBytes: rss,
    },
  })
}

function tell(message: FromFlow, then: () => void = () => {}): void {
  process.send?.(message, then)
}
