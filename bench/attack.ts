/**
 * Sends requests that once ended the server or stopped it for others, one at a time and 20 at once, to a
 * server with a heap of 1 GiB. Reports for each whether the server survived, how much its memory grew, and
 * for how long /healthz was unanswered.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { BenchOptions } from './arguments.ts'
import type { Attack } from './attack-client.ts'
import type { HealthFigures, HealthTarget } from './attack-health.ts'
import { attacks } from './attack-requests.ts'
import { type BenchStore, openBenchStores, storeNames } from './bench-stores.ts'
import type { BenchResult } from './report.ts'

const growthBytesMax = 512 * 2 ** 20
const unansweredMsMax = 250
const atOnce = 20
const msMax = 60_000

type Server = Readonly<{ url: string; child: ChildProcess }>
type Outcome = Readonly<{
  name: string
  isAlive: boolean
  growthBytes: number
  unansweredMs: number
  causedMs: number
  answer: string
}>
/** A server that does nothing else, to know the delays of the machine. */
type Control = Readonly<{ url: string } & AsyncDisposable>

export async function benchAttack({ isQuick, stores, only = '', log }: BenchOptions): Promise<BenchResult> {
  await using benchStores = await openBenchStores(stores)
  await using control = await startControl()
  const notes = [...benchStores.notes]
  const chosen = attacks.filter(({ name }) => name.includes(only))
  for (const kind of stores) {
    for (const attack of chosen) {
      // A store of its own: a list would read the items of the attacks before it.
      const benchStore = await benchStores.create(kind)
      await prepare(attack, benchStore)
      for (const count of isQuick ? [1] : [1, atOnce]) {
        const line = formatOutcome(await measure(attack, count, benchStore, control))
        const text = `${storeNames[kind]}, ${String(count).padStart(2)} at once: ${line}`
        notes.push(text)
        log(text)
      }
      await benchStore.remove()
    }
  }
  return { measured: [], notes }
}

/** Creates what the attack reads, with a server of its own, so that its memory does not count. */
async function prepare({ prepare }: Attack, benchStore: BenchStore): Promise<void> {
  if (prepare === undefined) return
  const server = await startServer(benchStore)
  try {
    await prepare(server.url)
  } finally {
    await stop(server)
  }
}

async function stop({ child }: Server): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

function formatOutcome(outcome: Outcome): string {
  const { name, isAlive, growthBytes, unansweredMs, causedMs, answer } = outcome
  const isMet = isAlive && growthBytes <= growthBytesMax && causedMs <= unansweredMsMax
  const facts = [
    isAlive ? 'survived' : 'ENDED',
    `memory +${Math.round(growthBytes / 2 ** 20)} MiB`,
    `/healthz unanswered for ${Math.round(unansweredMs)} ms, without the machine ${Math.round(causedMs)} ms`,
    `answer ${answer}`,
  ]
  return `${isMet ? 'met   ' : 'MISSED'} ${name}: ${facts.join(', ')}`
}

async function measure(
  attack: Attack,
  count: number,
  benchStore: BenchStore,
  control: Control,
): Promise<Outcome> {
  const server = await startServer(benchStore)
  try {
    const stopWatching = watchHealth(server, control)
    await new Promise((resolve) => setTimeout(resolve, 500))
    const answers = await Promise.all(
      Array.from({ length: count }, () => within(attack.run(server.url)).catch((error) => String(error))),
    )
    const { unansweredMs, causedMs, rssBefore, rssMax } = await stopWatching()
    const isAlive = server.child.exitCode === null && server.child.signalCode === null
    const growthBytes = Math.max(0, rssMax - rssBefore)
    const answer = [...new Set(answers.map((text) => text.slice(0, 60)))].slice(0, 3).join(' | ')
    return { name: attack.name, isAlive, growthBytes, unansweredMs, causedMs, answer }
  } finally {
    await stop(server)
  }
}

function within(work: Promise<string>): Promise<string> {
  return Promise.race([
    work,
    new Promise<string>((resolve) => setTimeout(() => resolve('none in time'), msMax).unref()),
  ])
}

/** Starts the health checks, and returns a function that ends them. */
function watchHealth({ url, child }: Server, control: Control): () => Promise<HealthFigures> {
  const target: HealthTarget = { url, pid: child.pid ?? 0, controlUrl: control.url }
  const worker = new Worker(new URL('attack-health.ts', import.meta.url), { workerData: target })
  return async () => {
    const figures = once(worker, 'message')
    worker.postMessage('stop')
    return (await figures)[0] as HealthFigures
  }
}

async function startServer({ target }: BenchStore): Promise<Server> {
  const main = fileURLToPath(new URL('../server/src/cli/main.ts', import.meta.url))
  const store = target.kind === 'postgres' ? target.url : target.kind === 'sqlite' ? target.path : ':memory:'
  const args = ['--max-old-space-size=1024', main, 'serve', '--port', '0', '--store', store]
  const child = spawn(process.execPath, [...args, '--log-format', 'json'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the server ended with code ${code} before it was up`)))
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (text) => {
      if (text.includes('"redrive is up"')) resolve(String((JSON.parse(text) as { url: string }).url))
    })
  })
  return { url, child }
}

async function startControl(): Promise<Control> {
  const path = fileURLToPath(new URL('attack-control.ts', import.meta.url))
  const child = spawn(process.execPath, [path], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [port] = await once(createInterface({ input: child.stdout }), 'line')
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
    },
  }
}
