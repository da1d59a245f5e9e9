/**
 * Measures the memory of Redrive while 256 callers produce, lease and complete items with a bounded backlog.
 * The memory that is in use after a garbage collection must be the same after a million items as after the
 * first hundred thousand.
 *
 * Redrive runs in its own process (queue-memory-process.ts), so that earlier work does not count.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { BenchOptions } from './arguments.ts'
import { type BenchStore, openBenchStores, storeNames } from './bench-stores.ts'
import { callersMax } from './peers/peer.ts'
import type { MemoryRun, MemoryRunMessage } from './queue-memory-process.ts'
import { type BenchResult, type Measured, type Memory, type MemorySample, sumUsedBytes } from './report.ts'

const itemsDefault = 1_000_000
const samplesMax = 10
const backlogMax = 10_000
const growthBytesMax = 10_000_000

export async function benchQueueMemory({ isQuick, items, stores, log }: BenchOptions): Promise<BenchResult> {
  const count = items ?? (isQuick ? itemsDefault / 10 : itemsDefault)
  await using benchStores = await openBenchStores(stores)
  const measured: Measured[] = []
  const memory: Memory[] = []
  for (const kind of stores) {
    const subject = storeNames[kind]
    log(`${subject}: ${count.toLocaleString('en-US')} items`)
    const benchStore = await benchStores.create(kind)
    const run: MemoryRun = {
      target: benchStore.target,
      items: count,
      sampleEvery: Math.ceil(count / samplesMax),
      callers: callersMax,
      backlogMax,
    }
    const { samples, perSecond } = await runProcess(run, benchStore)
    const growthBytes = sumUsedBytes(samples.at(-1)) - sumUsedBytes(samples[0])
    memory.push({ subject, samples, growthBytes, growthBytesMax })
    measured.push({
      subject,
      operation: 'produce+lease+complete',
      batch: 1,
      callers: callersMax,
      perSecond,
      p50Ms: null,
      p99Ms: null,
    })
  }
  const notes = [
    ...benchStores.notes,
    `Half of the callers produce, half lease and complete, one item per call; at most ${backlogMax.toLocaleString('en-US')} wait.`,
    'Growth is that of heap, threads and outside together, from the first sample to the last. The rate includes the samples.',
  ]
  return { measured, memory, notes }
}

type MemoryRunResult = Readonly<{ samples: readonly MemorySample[]; perSecond: number }>

function runProcess(run: MemoryRun, benchStore: BenchStore): Promise<MemoryRunResult> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL('queue-memory-run.ts', import.meta.url)), [JSON.stringify(run)])
    const samples: Promise<MemorySample>[] = []
    child.on('message', (message: MemoryRunMessage) => {
      if (message.kind === 'sample') {
        samples.push(benchStore.sizeBytes().then((storeBytes) => ({ ...message.sample, storeBytes })))
        return
      }
      Promise.all(samples).then((taken) => resolve({ samples: taken, perSecond: message.perSecond }), reject)
    })
    child.once('error', reject)
    child.once('exit', (code) =>
      reject(new Error(`the measured process ended with code ${code} and without figures`)),
    )
  })
}
