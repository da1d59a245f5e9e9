/**
 * Sends requests that once ended the server or stopped it for others, one at a time and 20 at once, to a
 * server with a heap of 1 GiB. Reports for each whether the server survived, how much its memory grew, and
 * for how long /healthz was unanswered.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { BenchOptions } from './arguments.ts'
import type { HealthFigures, HealthTarget } from './attack-health.ts'
import { type BenchStore, openBenchStores, storeNames } from './bench-stores.ts'
import type { BenchResult } from './report.ts'

const growthBytesMax = 512 * 2 ** 20
const unansweredMsMax = 250
const atOnce = 20
const msMax = 60_000

type Server = Readonly<{ url: string; child: ChildProcess }>
type Attack = Readonly<{
  name: string
  /** Creates what the attack reads, before it is measured. */
  prepare?: (url: string) => Promise<void>
  /** Sends the request and returns its status. */
  run: (url: string) => Promise<string>
}>
type Outcome = Readonly<{
  name: string
  isAlive: boolean
  growthBytes: number
  unansweredMs: number
  answer: string
}>

export async function benchAttack({ isQuick, stores, log }: BenchOptions): Promise<BenchResult> {
  await using benchStores = await openBenchStores(stores)
  const notes = [...benchStores.notes]
  for (const kind of stores) {
    const benchStore = await benchStores.create(kind)
    for (const count of isQuick ? [1] : [1, atOnce]) {
      notes.push(`${storeNames[kind]}, ${count} at once:`)
      for (const attack of attacks) {
        const outcome = await measure(attack, count, benchStore)
        notes.push(formatOutcome(outcome))
        log(`${storeNames[kind]}, ${count} at once: ${formatOutcome(outcome)}`)
      }
    }
  }
  return { measured: [], notes }
}

function formatOutcome({ name, isAlive, growthBytes, unansweredMs, answer }: Outcome): string {
  const isMet = isAlive && growthBytes <= growthBytesMax && unansweredMs <= unansweredMsMax
  const facts = [
    isAlive ? 'survived' : 'ENDED',
    `memory +${Math.round(growthBytes / 2 ** 20)} MiB`,
    `/healthz unanswered for ${Math.round(unansweredMs)} ms`,
    `answer ${answer}`,
  ]
  return `  ${isMet ? 'met   ' : 'MISSED'} ${name}: ${facts.join(', ')}`
}

async function measure(attack: Attack, count: number, benchStore: BenchStore): Promise<Outcome> {
  const server = await startServer(benchStore)
  try {
    await attack.prepare?.(server.url)
    const stopWatching = watchHealth(server)
    await new Promise((resolve) => setTimeout(resolve, 500))
    const answers = await Promise.all(
      Array.from({ length: count }, () => within(attack.run(server.url)).catch((error) => String(error))),
    )
    const { unansweredMs, rssBefore, rssMax } = await stopWatching()
    const isAlive = server.child.exitCode === null && server.child.signalCode === null
    const growthBytes = Math.max(0, rssMax - rssBefore)
    const answer = [...new Set(answers.map((text) => text.slice(0, 60)))].slice(0, 3).join(' | ')
    return { name: attack.name, isAlive, growthBytes, unansweredMs, answer }
  } finally {
    server.child.kill('SIGKILL')
  }
}

function within(work: Promise<string>): Promise<string> {
  return Promise.race([
    work,
    new Promise<string>((resolve) => setTimeout(() => resolve('none in time'), msMax).unref()),
  ])
}

/** Starts the health checks, and returns a function that ends them. */
function watchHealth({ url, child }: Server): () => Promise<HealthFigures> {
  const target: HealthTarget = { url, pid: child.pid ?? 0 }
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

function get(url: string): Promise<string> {
  return send('GET', url, undefined)
}

function post(url: string, body: string | Buffer | object): Promise<string> {
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return send('POST', url, bytes)
}

/** Resolves with the status once the whole answer was read. */
function send(method: string, url: string, body: string | Buffer | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const request = httpRequest(url, { method, headers, agent: false }, (answer: IncomingMessage) => {
      answer.resume()
      answer.once('end', () => resolve(String(answer.statusCode)))
      answer.once('error', reject)
    })
    request.once('error', reject)
    request.end(body)
  })
}

const timeouts = { lease_timeout: '1m', expire_timeout: '24h' }
async function createQueue(url: string, name = 'attacked'): Promise<void> {
  await post(`${url}/v1/queues.create`, { queue_name: name, requested_partitions: 1, ...timeouts })
}

async function importItems(url: string, count: number, bytes: number, perCall: number): Promise<void> {
  await createQueue(url)
  const payload = Buffer.alloc(bytes, 'x').toString('base64')
  for (let done = 0; done < count; done += perCall) {
    const items = Array.from({ length: Math.min(perCall, count - done) }, () => ({ payload }))
    await post(`${url}/v1/storage/items.import`, { queue_name: 'attacked', items })
  }
}

async function capture(url: string, count: number, value: string): Promise<void> {
  await createQueue(url)
  for (let letter = 0; letter < count; letter++) {
    await post(`${url}/api/v1/letters`, { queue: 'attacked', letters: [{ original_value: value }] })
  }
}

const listAll = (url: string): Promise<string> =>
  post(`${url}/v1/storage/items.list`, { queue_name: 'attacked', limit: 65_536 })

const attacks: readonly Attack[] = [
  {
    name: 'discard of 10 million wrong ids',
    run: (url) =>
      post(`${url}/api/v1/letters/discard`, `{"ids":[${'"",'.repeat(10_000_000)}""],"reason":"x"}`),
  },
  {
    name: 'requeue of 10 million wrong ids',
    run: (url) => post(`${url}/api/v1/dlq/requeue`, `{"ids":[${'"",'.repeat(10_000_000)}""]}`),
  },
  {
    name: 'list of 65,536 items of 2,300 bytes',
    prepare: (url) => importItems(url, 65_536, 2_300, 8_192),
    run: listAll,
  },
  {
    name: 'list of 40 items of 3.7 MB',
    prepare: (url) => importItems(url, 40, 3_700_000, 4),
    run: listAll,
  },
  {
    name: 'capture of 19 million empty arrays',
    prepare: (url) => createQueue(url),
    run: (url) =>
      post(
        `${url}/api/v1/letters`,
        `{"queue":"attacked","letters":[{"original_value":[${'[],'.repeat(19_000_000)}[]]}]}`,
      ),
  },
  {
    name: 'capture of 30 million nested arrays',
    prepare: (url) => createQueue(url),
    run: (url) =>
      post(
        `${url}/api/v1/letters`,
        `{"queue":"attacked","letters":[{"original_value":${'['.repeat(30_000_000)}${']'.repeat(30_000_000)}}]}`,
      ),
  },
  {
    name: 'reading a letter of 5 million empty arrays as JSON',
    prepare: (url) => capture(url, 1, `[${'[],'.repeat(5_000_000)}[]]`),
    run: async (url) => {
      const page = await fetch(`${url}/api/v1/letters?limit=1`)
      const { letters } = (await page.json()) as { letters: readonly { id: string }[] }
      return get(`${url}/api/v1/letters/${letters[0]?.id}?payload_form=json`)
    },
  },
  {
    name: 'import of one 16 MiB item',
    prepare: (url) => createQueue(url),
    run: (url) =>
      post(`${url}/v1/storage/items.import`, {
        queue_name: 'attacked',
        items: [{ payload: Buffer.alloc(16 * 2 ** 20).toString('base64') }],
      }),
  },
  {
    name: 'request_timeout of 4 million digits',
    prepare: (url) => createQueue(url),
    run: (url) =>
      post(`${url}/v1/queue.produce`, {
        queue_name: 'attacked',
        request_timeout: `${'9'.repeat(4_000_000)}s`,
        items: [{}],
      }),
  },
  {
    name: 'JSON-path search in six letters of 10 MB',
    prepare: (url) => capture(url, 6, `[${'{"a":[1,2,3]},'.repeat(700_000)}1]`),
    run: (url) => get(`${url}/api/v1/letters?json=${encodeURIComponent('$.missing="x"')}`),
  },
  {
    name: 'export of eight letters of 15 MB that is not read',
    prepare: (url) => capture(url, 8, 'x'.repeat(15_000_000)),
    run: (url) => readNothing(`${url}/api/v1/letters/export`),
  },
  {
    name: 'list of one queue beside 30 queues of 10,000 partitions',
    prepare: async (url) => {
      for (let queue = 0; queue < 30; queue++) {
        await post(`${url}/v1/queues.create`, {
          queue_name: `wide-${queue}`,
          requested_partitions: 10_000,
          ...timeouts,
        })
      }
    },
    run: (url) => get(`${url}/api/v1/queues?limit=1`),
  },
  {
    name: 'metrics of 2,000 queues',
    prepare: async (url) => {
      const names = Array.from({ length: 2_000 }, (_, queue) => `queue-${queue}`)
      for (let from = 0; from < names.length; from += 100) {
        await Promise.all(names.slice(from, from + 100).map((name) => createQueue(url, name)))
      }
    },
    run: (url) => get(`${url}/metrics`),
  },
  {
    name: '1,000 idle connections',
    run: async (url) => {
      const { port } = new URL(url)
      const sockets = await Promise.all(
        Array.from({ length: 1_000 }, () => openConnection(Number(port)).catch(() => undefined)),
      )
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      for (const socket of sockets) socket?.destroy()
      return 'closed'
    },
  },
]

function openConnection(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Begins a request and reads nothing of its answer for three seconds. */
function readNothing(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { agent: false }, (answer) => {
      answer.pause()
      setTimeout(() => {
        resolve(String(answer.statusCode))
        request.destroy()
      }, 3_000)
    })
    request.once('error', reject)
    request.end()
  })
}
