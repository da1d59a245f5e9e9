/** `redrive serve --processes 2`: two processes behind one port, supervised by a third. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../../tools/services/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import type { LogLine } from '../http/test-server.ts'

const postgres = await requireService('postgres')
const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

type Started = Readonly<{
  child: ChildProcess
  lines: LogLine[]
  output: { stderr: string }
  ended: Promise<Readonly<{ code: number | null }>>
}>

/** A process starts after the one before it, which takes seconds on a busy machine. */
const startMsMax = 60_000

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

function start(store: string, ...more: string[]): Started {
  const args = [main, 'serve', '--port', '0', '--store', store, '--log-format', 'json', '--processes', '2']
  const env = { PATH: process.env.PATH }
  const child = spawn(process.execPath, [...args, ...more], { stdio: ['ignore', 'pipe', 'pipe'], env })
  started.push(child)
  const output = { stderr: '' }
  child.stderr.on('data', (data: Buffer) => {
    output.stderr += data.toString()
  })
  const lines: LogLine[] = []
  // Every line must be whole JSON: the lines of two processes must not mix.
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line) as LogLine))
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null }))
  return { child, lines, output, ended }
}

async function waitForUrl({ output, ended }: Started): Promise<string> {
  const whenEnded = ended.then(({ code }) => {
    throw new Error(`the server ended with code ${code}: ${output.stderr}`)
  })
  const readUrl = async () => /listening on (http:\S+),.* with 2 processes/.exec(output.stderr)?.[1]
  const listening = pollUntil(readUrl, (url) => url !== undefined, startMsMax)
  return (await Promise.race([listening, whenEnded])) ?? ''
}

async function readMetric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const values = text.split('\n').filter((line) => line.startsWith(name))
  return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** Each request has its own connection, so that both processes get some of them. */
async function call(url: string, path: string, body: object): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(body),
  })
}

const requests = 'redrive_http_requests_total{method="POST",path="/v1/queue.produce",status="200"}'

async function createQueue(url: string): Promise<void> {
  const queue = { queue_name: 'orders', lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }
  expect((await call(url, '/v1/queues.create', queue)).status).toBe(200)
}

async function produce(url: string, count: number): Promise<void> {
  const body = { queue_name: 'orders', request_timeout: '1m', items: [{ utf8: 'hello' }] }
  for (let done = 0; done < count; done++) {
    expect((await call(url, '/v1/queue.produce', body)).status).toBe(200)
  }
}

/** The processes that have written log lines. */
function findProcesses(lines: readonly LogLine[]): unknown[] {
  return [...new Set(lines.map((line) => line.process))].filter((value) => value !== undefined).sort()
}

describe('several processes behind one port', { ...needs(postgres), timeout: 120_000 }, () => {
  let database: Database
  beforeAll(async () => {
    database = await createDatabase()
  })

  it('metrics are summed, and after a process was killed its totals stay part of the sums', async () => {
    const server = start(database.url)
    const url = await waitForUrl(server)
    await createQueue(url)
    await produce(url, 12)
    expect(await readMetric(url, requests)).toBe(12)
    expect(await readMetric(url, 'redrive_items{queue="orders",state="waiting"}')).toBe(12)
    expect(await readMetric(url, 'redrive_info')).toBe(1)
    expect(findProcesses(server.lines)).toEqual([1, 2])

    const [pid] = await readProcessIds(server.child.pid ?? 0)
    process.kill(pid ?? 0, 'SIGKILL')
    await waitForLines(server, /ended and is replaced/, 1)
    await produce(url, 6)
    await waitForLines(server, /redrive is up/, 3)
    expect(await readMetric(url, requests)).toBe(18)
  })

  it('one SIGTERM stops all processes in order, and the exit code is 0', async () => {
    const server = start(database.url)
    const url = await waitForUrl(server)
    const pids = await readProcessIds(server.child.pid ?? 0)
    // A service manager sends the signal to every process, in addition to the supervisor's stop.
    for (const pid of pids) process.kill(pid, 'SIGTERM')
    server.child.kill('SIGTERM')
    expect(await server.ended).toEqual({ code: 0 })
    expect(server.lines.filter(({ msg }) => msg === 'redrive has stopped')).toHaveLength(2)
    await expect(fetch(`${url}/healthz`)).rejects.toThrow()
  })

  it('killing the supervisor ends all processes', async () => {
    const server = start(database.url)
    await waitForUrl(server)
    const pids = await readProcessIds(server.child.pid ?? 0)
    expect(pids).toHaveLength(2)
    server.child.kill('SIGKILL')
    await pollUntil(
      async () => pids.filter(isRunning),
      (running) => running.length === 0,
    )
  })

  it('a store that only one process can use is refused once, with exit code 2', async () => {
    const server = start(':memory:')
    expect(await server.ended).toEqual({ code: 2 })
    expect(server.output.stderr.match(/only a PostgreSQL store can be shared/g)).toHaveLength(1)
  })
})

async function waitForLines({ lines }: Started, pattern: RegExp, count: number): Promise<void> {
  const countLines = async () => lines.filter(({ msg }) => pattern.test(msg)).length
  await pollUntil(countLines, (found) => found >= count)
}

async function readProcessIds(parent: number): Promise<number[]> {
  const listed = spawn('ps', ['-o', 'pid=', '--ppid', String(parent)])
  let text = ''
  listed.stdout.on('data', (data: Buffer) => {
    text += data.toString()
  })
  await once(listed, 'close')
  return text
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== listed.pid)
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
