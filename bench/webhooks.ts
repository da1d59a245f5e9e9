/**
 * Measures the delivery of broadcasts to seven consumers on this machine, beside a bare loop that POSTs the
 * same bodies with the same HTTP client and parallelism, and the cost of `/dlq-status` with millions of dead
 * jobs beside a `GROUP BY` over them. Server, receivers and bare loop have processes of their own.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createSystemClock } from '../server/src/system-clock.ts'
import type { BenchOptions, StoreKind } from './arguments.ts'
import { type BenchStore, openBenchStores, storeNames } from './bench-stores.ts'
import { checkDiskSpace } from './letters/check-disk-space.ts'
import { fillWithLetters } from './letters/fill-with-letters.ts'
import { openRedrive } from './peers/redrive.ts'
import type { BenchResult, Measured, Ratio, Timed } from './report.ts'
import { runSql } from './run-sql.ts'
import {
  body,
  broadcast,
  broadcastAll,
  broadcastHeaders,
  callEverything,
  changeConsumers,
  channel,
  consumers,
  countDispatched,
  setUp,
  toTimed,
} from './webhooks/calls.ts'

const broadcastsDefault = 20_000
const deadDefault: Readonly<Record<StoreKind, number>> = { postgres: 5_000_000, sqlite: 1_000_000 }
const parallel = 200
const broadcastCallers = 32
const aims: Readonly<Record<StoreKind, number>> = { postgres: 0.5, sqlite: 0.6 }
const statusCalls = 300
const barePushesMin = 20_000

export async function benchWebhooks(options: BenchOptions): Promise<BenchResult> {
  await using stores = await openBenchStores(options.stores)
  const measured: Measured[] = []
  const timed: Timed[] = []
  const ratios: Ratio[] = []
  const isWanted = (part: string) => options.only === undefined || part.includes(options.only)
  for (const kind of options.stores) {
    for (let round = 0; round < (isWanted('pushes') ? options.rounds : 0); round++) {
      options.log(`${storeNames[kind]}: round ${round + 1} of ${options.rounds}`)
      const result = await measurePushes(kind, await stores.create(kind), options)
      measured.push(...result.measured)
      timed.push(...result.timed)
      ratios.push(...result.ratios)
    }
    if (isWanted('status')) timed.push(...(await measureStatus(kind, await stores.create(kind), options)))
  }
  return { measured, timed, ratios, notes: [...stores.notes] }
}

async function measurePushes(
  kind: StoreKind,
  store: BenchStore,
  { isQuick, items = isQuick ? broadcastsDefault / 10 : broadcastsDefault, log }: BenchOptions,
) {
  const subject = `Redrive, ${storeNames[kind]}`
  const receiver = await startReceiver()
  const urls = receiver.ports.map((port) => `http://127.0.0.1:${port}/hook`)
  const pushes = items * consumers.length
  const barePushes = Math.max(pushes / 4, barePushesMin)
  const bareBefore = await runBareLoop(urls, barePushes)
  const server = await startRedrive(store)
  try {
    await setUp(server.url, urls)
    await changeConsumers(server.url, 'pause')
    log(`${subject}: ${items} broadcasts`)
    const accepted = await broadcastAll(server.url, items, broadcastCallers)
    while ((await countDispatched(server.url)) < items) await sleep(100)
    const times = new Map<string, number[]>()
    log(`${subject}: ${pushes} pushes are pending`)
    for (let call = 0; call < 5; call++) await callEverything(server.url, times)
    await receiver.count('reset')
    await changeConsumers(server.url, 'resume')
    const acceptTimes: number[] = []
    const perSecond = await measureDrain(receiver, pushes, async () => {
      acceptTimes.push(await broadcast(server.url, 'probe'))
      await callEverything(server.url, times)
      await sleep(50)
    })
    const bareAfter = await runBareLoop(urls, barePushes)
    const bare = Math.max(bareBefore, bareAfter)
    const row = { batch: 1, p50Ms: null, p99Ms: null } as const
    const measured: Measured[] = [
      { subject, operation: 'push', callers: parallel, perSecond, ...row },
      { subject: 'bare loop', operation: 'push', callers: parallel, perSecond: bare, ...row },
      { subject, operation: 'broadcast', callers: broadcastCallers, perSecond: accepted.perSecond, ...row },
    ]
    const timed = [
      toTimed(subject, 'accept, no dispatch', accepted.times, 100),
      toTimed(subject, 'accept during dispatch', acceptTimes, 100),
      ...[...times].map(([path, own]) => toTimed(subject, `${path}, pushes pending`, own, 2_000)),
    ]
    const ratio = { subject, operation: 'push', batch: 1, against: 'bare loop' }
    return { measured, timed, ratios: [{ ...ratio, times: perSecond / bare, aim: aims[kind] }] }
  } finally {
    await server.stop()
    receiver.stop()
    await store.remove()
  }
}

/**
 * The rate between the first twentieth and the half of the pushes. Then `probe` runs again and again until
 * nearly all are done: it takes part of the processor, so the rate is measured without it.
 */
async function measureDrain(receiver: Receiver, pushes: number, probe: () => Promise<void>): Promise<number> {
  const first = await waitFor(receiver, pushes * 0.05)
  const half = await waitFor(receiver, pushes * 0.5)
  let isDone = false
  const probing = (async () => {
    while (!isDone) await probe()
  })()
  await waitFor(receiver, pushes * 0.95)
  isDone = true
  await probing
  return (1_000 * (half.count - first.count)) / (half.ms - first.ms)
}

async function waitFor(receiver: Receiver, pushes: number): Promise<Readonly<{ count: number; ms: number }>> {
  for (;;) {
    const count = await receiver.count('count')
    const ms = performance.now()
    if (count >= pushes) return { count, ms }
    await sleep(50)
  }
}

type Receiver = Readonly<{
  ports: readonly number[]
  count(message: 'count' | 'reset'): Promise<number>
  stop(): void
}>

async function startReceiver(): Promise<Receiver> {
  const child = fork(fileURLToPath(new URL('webhooks/receiver.ts', import.meta.url)), [
    String(consumers.length),
  ])
  const [{ ports }] = (await once(child, 'message')) as [{ ports: number[] }]
  return {
    ports,
    count: async (message) => {
      child.send(message)
      const [{ received }] = (await once(child, 'message')) as [{ received: number }]
      return received
    },
    stop: () => child.disconnect(),
  }
}

/** The headers of a push, except those that differ. */
async function runBareLoop(urls: readonly string[], pushes: number): Promise<number> {
  const headers = {
    ...broadcastHeaders,
    'X-Broker-Message-Priority': '0',
    'X-Broker-Metadata-Headers': '',
    'User-Agent': 'Webhook Message Broker',
    'X-Request-ID': 'x'.repeat(20),
    'webhook-id': 'x'.repeat(20),
    'webhook-timestamp': '1700000000',
    'webhook-signature': `v1,${'x'.repeat(44)}`,
  }
  const origins = urls.map((url) => new URL(url).origin)
  const task = { urls: origins, headers, body, pushes: Math.round(pushes), parallel }
  const child = fork(fileURLToPath(new URL('webhooks/bare-loop.ts', import.meta.url)), [JSON.stringify(task)])
  const [{ perSecond }] = (await once(child, 'message')) as [{ perSecond: number }]
  return perSecond
}

async function startRedrive({
  target,
}: BenchStore): Promise<Readonly<{ url: string; stop(): Promise<void> }>> {
  const main = fileURLToPath(new URL('../server/src/cli/main.ts', import.meta.url))
  const store = target.kind === 'postgres' ? target.url : target.path
  const child = spawn(
    process.execPath,
    [main, 'serve', '--store', store, '--port', '0', '--log-level', 'warn'],
    { stdio: ['ignore', 'inherit', 'pipe'] },
  )
  let text = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (data: Buffer) => {
      text += data.toString()
      const found = /listening on (http:\S+),/.exec(text)?.[1]
      if (found !== undefined) resolve(found)
    })
    child.once('exit', (code) => reject(new Error(`the server ended with code ${code}: ${text}`)))
  })
  return { url, stop: () => end(child) }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

/** `/dlq-status` with many dead jobs, and the count that other programs make over their rows. */
async function measureStatus(
  kind: StoreKind,
  store: BenchStore,
  { isQuick, letters = isQuick ? 100_000 : deadDefault[kind], log }: BenchOptions,
): Promise<Timed[]> {
  const subject = `Redrive, ${storeNames[kind]}, ${letters.toLocaleString('en-US')} dead jobs`
  checkDiskSpace(kind, letters)
  const preparing = await startRedrive(store)
  await setUp(
    preparing.url,
    consumers.map(() => 'http://127.0.0.1:9/'),
  )
  await preparing.stop()
  const opened = await openRedrive(store.target)
  const now = createSystemClock().now()
  let logged = 0
  for (const [at, id] of consumers.entries()) {
    const share = Math.floor(letters / consumers.length) + (at < letters % consumers.length ? 1 : 0)
    const deadQueue = `webhook:${channel}:${id}:dead`
    await fillWithLetters(opened.storage, { subject, count: share, now, deadQueue, onProgress: () => {} })
    logged += share
    log(`${subject}: ${logged} stored`)
  }
  await opened.close()
  const server = await startRedrive(store)
  try {
    const times: number[] = []
    for (let call = 0; call < statusCalls + 20; call++) {
      const startedAt = performance.now()
      const response = await fetch(`${server.url}/dlq-status`)
      const status = (await response.json()) as { consumers: { deadCount: number }[] }
      const sum = status.consumers.reduce((total, { deadCount }) => total + deadCount, 0)
      if (sum !== letters) throw new Error(`/dlq-status counts ${sum} dead jobs instead of ${letters}`)
      if (call >= 20) times.push(performance.now() - startedAt)
    }
    const grouped = store.target.kind === 'postgres' ? await measureGroupBy(store.target.url) : []
    return [
      toTimed(subject, '/dlq-status', times, 5),
      ...grouped.map((own) => ({ ...toTimed(subject, 'GROUP BY over the rows', own, 0), aimMs: null })),
    ]
  } finally {
    await server.stop()
    await store.remove()
  }
}

async function measureGroupBy(url: string): Promise<readonly (readonly number[])[]> {
  const sql =
    'select queue_id, count(id) from redrive.items_sourced where state in (0, 1, 4) group by queue_id'
  const times: number[] = []
  for (let call = 0; call < 3; call++) {
    const startedAt = performance.now()
    await runSql(url, [sql])
    times.push(performance.now() - startedAt)
  }
  return [times]
}
