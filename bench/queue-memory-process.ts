/**
 * The process that queue-memory.ts measures: it runs Redrive with its callers, and samples its own memory.
 */
import { setMaxListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Worker } from 'node:worker_threads'
import type { StoreTarget } from '../server/src/storage/open-storage.ts'
import { leaseAndComplete, openRedrive, produceItems } from './peers/redrive.ts'
import type { MemorySample } from './report.ts'

export type MemoryRun = Readonly<{
  target: StoreTarget
  items: number
  sampleEvery: number
  callers: number
  /** Producers wait while this number of items is not completed. */
  backlogMax: number
}>
export type MemoryRunMessage =
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

const { target, items, sampleEvery, callers, backlogMax } = JSON.parse(process.argv[2] ?? '{}') as MemoryRun
const { engine, storage, close } = await openRedrive(target, [{ name: queue }])
const finished = new AbortController()
setMaxListeners(0, finished.signal)
/** Producers that wait for the backlog to shrink. */
const waitingProducers: (() => void)[] = []
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
send({ kind: 'done', perSecond: completed / seconds }, () => process.exit(0))

async function keepProducing(): Promise<void> {
  while (produced < items) {
    if (produced - completed >= backlogMax) {
      await new Promise<void>((resolve) => waitingProducers.push(resolve))
      continue
    }
    produced++
    await produceItems(engine, queue, 1)
  }
}

async function keepLeasing(caller: number): Promise<void> {
  while (completed < items) {
    const count = await leaseAndComplete(engine, { queue, caller, countMax: 1, signal: finished.signal })
    completed += count
    for (let each = 0; each < count; each++) waitingProducers.pop()?.()
    if (completed - sampledAt >= sampleEvery || (count > 0 && completed === items)) await sample()
    if (completed >= items) finished.abort()
  }
}

/** The callers continue during a sample: the memory of 256 calls in progress is small and constant. */
async function sample(): Promise<void> {
  sampledAt += sampleEvery
  const at = completed
  let threadHeapsBytes = 0
  let threadsOutsideBytes = 0
  for (const thread of threads) {
    // Requesting a heap snapshot is the only way to make a thread collect its garbage.
    ;(await thread.getHeapSnapshot()).destroy()
    const heap = await thread.getHeapStatistics()
    threadHeapsBytes += heap.used_heap_size
    threadsOutsideBytes += heap.external_memory
  }
  collectGarbage()
  // The second collection frees the memory that the first one handed to finalizers.
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  const { heapUsed, external, rss } = process.memoryUsage()
  send({
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

function send(message: MemoryRunMessage, then: () => void = () => {}): void {
  process.send?.(message, then)
}
