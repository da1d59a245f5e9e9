/**
 * Measures single-item produces, and leases with completes, over HTTP: requests per second and CPU time per
 * item, for each number of processes, next to empty handlers. Every server runs in its own process, and the
 * client too. `--peer` measures another server that implements the Queue API with the same requests.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BenchOptions } from './arguments.ts'
import type { HttpOperation } from './http-client.ts'
import { type HttpResult, runHttpClient } from './http-figures.ts'
import { startBenchPostgres } from './postgres.ts'
import type { BenchResult, Measured, Ratio } from './report.ts'
import { UnmetRequirement } from './unmet-requirement.ts'

const connections = 64
const processCounts = [1, 2, 4]
const emptyHandlers = ['node:http', 'Fastify'] as const
const headers = { 'content-type': 'application/json' }

type Serving = Readonly<{ url: string; pid?: number; stop(): Promise<void> }>
type Row = Measured & Readonly<{ cpuUs: number | null }>

export async function benchHttpServers(options: BenchOptions): Promise<BenchResult> {
  const seconds = options.isQuick ? 2 : 8
  const postgres = await startBenchPostgres()
  if (!postgres.isFound) throw new UnmetRequirement(`PostgreSQL is needed: ${postgres.reason}`)
  const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-http-'))
  const subjects = new Map<string, () => Promise<Serving>>()
  for (const kind of emptyHandlers) subjects.set(`empty ${kind} handler`, () => startEmpty(kind))
  for (const count of processCounts) {
    const name = `Redrive, PostgreSQL, ${count} ${count === 1 ? 'process' : 'processes'}`
    subjects.set(name, () => startRedrive(postgres.url, count))
  }
  subjects.set('Redrive, SQLite file', () => startRedrive(join(folder, 'redrive.db'), 1))
  const { peer } = options
  if (peer !== undefined) subjects.set(`peer ${peer}`, async () => ({ url: peer, stop: async () => {} }))
  try {
    const rows: Row[] = []
    // All subjects in each round, so that a slow minute of the machine does not hit only one of them.
    for (let round = 0; round < options.rounds; round++) {
      for (const [subject, start] of subjects) {
        options.log(`round ${round + 1}: ${subject}`)
        rows.push(...(await measureServer(subject, await start(), seconds)))
      }
    }
    const measured = keepBest(rows)
    return { measured, ratios: compare(measured), notes: describeCpu(measured, postgres.description) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
    await postgres.stop()
  }
}

async function measureServer(subject: string, serving: Serving, seconds: number): Promise<Row[]> {
  const queue = `bench-${Math.floor(performance.now() * 1_000)}`
  const isEmpty = subject.startsWith('empty')
  const measureOne = async (operation: HttpOperation, forSeconds: number): Promise<Row> => {
    const load = { url: serving.url, queue, operation, connections, seconds: forSeconds }
    const figures: HttpResult = await runHttpClient(load, serving.pid)
    return { subject, operation: `HTTP ${operation}`, batch: 1, callers: connections, ...figures }
  }
  try {
    if (isEmpty) return [await measureOne('produce', seconds)]
    await createQueue(serving.url, queue)
    const produced = await measureOne('produce', seconds)
    // The items of the produces before may not be enough for the leases.
    await fillQueue(serving.url, queue, 30_000)
    return [produced, await measureOne('lease and complete', seconds / 2)]
  } finally {
    await serving.stop()
  }
}

async function createQueue(url: string, queue: string): Promise<void> {
  const body = {
    queue_name: queue,
    lease_timeout: '1m',
    expire_timeout: '24h',
    requested_partitions: 1,
  }
  const response = await fetch(`${url}/v1/queues.create`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`queues.create: ${await response.text()}`)
}

async function fillQueue(url: string, queue: string, count: number): Promise<void> {
  const items = Array.from({ length: 500 }, () => ({ utf8: 'x'.repeat(300) }))
  const body = JSON.stringify({ queue_name: queue, request_timeout: '1m', items })
  for (let done = 0; done < count; done += items.length) {
    const response = await fetch(`${url}/v1/queue.produce`, { method: 'POST', headers, body })
    if (!response.ok) throw new Error(`queue.produce: ${await response.text()}`)
  }
}

async function startEmpty(kind: (typeof emptyHandlers)[number]): Promise<Serving> {
  const child = fork(fileURLToPath(new URL('http-empty.ts', import.meta.url)), [kind])
  const [url] = (await once(child, 'message')) as [string]
  return { url, pid: child.pid as number, stop: () => end(child) }
}

async function startRedrive(store: string, processes: number): Promise<Serving> {
  const main = fileURLToPath(new URL('../server/src/cli/main.ts', import.meta.url))
  const settings = ['--port', '0', '--log-level', 'warn', '--processes', String(processes)]
  const child = spawn(process.execPath, [main, 'serve', '--store', store, ...settings], {
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let text = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (data: Buffer) => {
      text += data.toString()
      const found = /listening on (http:\S+),/.exec(text)?.[1]
      if (found !== undefined) resolve(found)
    })
    child.once('exit', (code) => reject(new Error(`the server ended with code ${code}: ${text}`)))
  })
  return { url, pid: child.pid as number, stop: () => end(child) }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

function keepBest(rows: readonly Row[]): Row[] {
  const best = new Map<string, Row>()
  for (const row of rows) {
    const key = `${row.subject} ${row.operation}`
    if (row.perSecond > (best.get(key)?.perSecond ?? 0)) best.set(key, row)
  }
  return [...best.values()]
}

function compare(rows: readonly Row[]): Ratio[] {
  const against = rows.filter(({ subject }) => /^(empty|peer)/.test(subject))
  return rows
    .filter(({ subject }) => subject.startsWith('Redrive'))
    .flatMap((row) =>
      against
        .filter(({ operation }) => operation === row.operation)
        .map((other) => ({
          subject: row.subject,
          operation: row.operation,
          batch: 1,
          against: other.subject,
          times: row.perSecond / other.perSecond,
          aim: other.subject.startsWith('peer') ? 1 : null,
        })),
    )
}

function describeCpu(rows: readonly Row[], postgres: string): string[] {
  const lines = rows
    .filter(({ cpuUs }) => cpuUs !== null)
    .map(({ subject, operation, cpuUs }) => `  ${subject}, ${operation}: ${cpuUs?.toFixed(0)} µs`)
  return ['CPU time of the server (all its processes) per item:', ...lines, postgres]
}
