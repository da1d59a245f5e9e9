/**
 * What Redrive keeps in memory while items pass through it: produced, leased and completed by 256 callers,
 * with a bounded backlog. What is held on to after a collection of garbage must be the same after a
 * million items as after the first hundred thousand.
 *
 * Redrive is in a process of its own (queue-memory-flow.ts), so that nothing that ran before counts.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { BenchOptions } from './arguments.ts'
import { callersMax } from './peers/peer.ts'
import { openPlaces, type Place, storeNames } from './places.ts'
import type { Flow, FromFlow } from './queue-memory-flow.ts'
import { type BenchResult, type Measured, type Memory, type MemorySample, usedBytes } from './report.ts'

const itemsDefault = 1_000_000
const samplesMax = 10
const backlogMax = 10_000
const growthBytesMax = 10_000_000

export async function benchQueueMemory({ isQuick, items, stores, say }: BenchOptions): Promise<BenchResult> {
  const count = items ?? (isQuick ? itemsDefault / 10 : itemsDefault)
  await using places = await openPlaces(stores)
  const measured: Measured[] = []
  const memory: Memory[] = []
  for (const kind of stores) {
    const subject = storeNames[kind]
    say(`${subject}: ${count.toLocaleString('en-US')} items`)
    const place = await places.create(kind)
    const flow: Flow = {
      target: place.target,
      items: count,
      sampleEvery: Math.ceil(count / samplesMax),
      callers: callersMax,
      backlogMax,
    }
    const { samples, perSecond } = await runFlow(flow, place)
    const growthBytes = usedBytes(samples.at(-1)) - usedBytes(samples[0])
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
    ...places.notes,
    `Half of the callers produce, half lease and complete, one item per call; at most ${backlogMax.toLocaleString('en-US')} wait.`,
    'Growth is that of heap, threads and outside together, from the first sample to the last. The rate includes the samples.',
  ]
  return { measured, memory, notes }
}

type FlowFigures = Readonly<{ samples: readonly MemorySample[]; perSecond: number }>

function runFlow(flow: Flow, place: Place): Promise<FlowFigures> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL('queue-memory-flow.ts', import.meta.url)), [
      JSON.stringify(flow),
    ])
    const samples: Promise<MemorySample>[] = []
    child.on('message', (message: FromFlow) => {
      if (message.kind === 'sample') {
        samples.push(place.sizeBytes().then((storeBytes) => ({ ...message.sample, storeBytes })))
        return
      }
      Promise.all(samples).then((taken) => resolve({ samples: taken, perSecond: message.perSecond }), reject)
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the flow of items ended with ${code} and no figures`)))
  })
}
