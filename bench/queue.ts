/**
 * Compares Redrive with its peers in one run on one machine. Every acknowledged write is durable in all of
 * them (PostgreSQL with fsync and synchronous_commit on, Redis with appendfsync always, SQLite with
 * synchronous full).
 *
 * Each combination of peer and shape gets an empty store. The benchmark measures produce, fills the store up
 * to the same number of items without measuring, and then measures how fast the store is drained. A slow peer
 * is stopped after `msMax`; its rate is that of the items handled until then.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPgClient } from '../server/src/storage/postgres/connection/tls-connection.ts'
import { getRedis, stopServices } from '../tools/services/index.ts'
import { createDatabaseOn, type Database } from '../tools/services/postgres/database.ts'
import type { BenchOptions } from './arguments.ts'
import { benchHttp, httpOperation, httpSubjects } from './http.ts'
import { createBullmqPeer, makeRedisDurable } from './peers/bullmq.ts'
import { createGraphileWorkerPeer } from './peers/graphile-worker.ts'
import { callersMax, loadPeer, type Peer, waitUntil } from './peers/peer.ts'
import { createPgBossPeer } from './peers/pg-boss.ts'
import { createRedrivePeer } from './peers/redrive.ts'
import { startBenchPostgres } from './postgres.ts'
import { type BenchResult, type Measured, measureItems, type Ratio, selectBest } from './report.ts'
import { UnmetRequirement } from './unmet-requirement.ts'

const itemsMax = 100_000
const batchMax = 1_000
const msMax = 15_000
const shapes = [
  { batch: 1, callers: callersMax },
  // With this batch size, more callers would only wait.
  { batch: batchMax, callers: 4 },
] as const
const ours = 'Redrive, PostgreSQL'
const oursOnFile = 'Redrive, SQLite file'
const produce = 'produce'
const consume = 'lease+complete'

/** The aims for single calls. */
const aims: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'pg-boss': { [produce]: 20, [consume]: 100 },
  BullMQ: { [produce]: 3, [consume]: 4 },
  'graphile-worker': { [consume]: 2 },
}
/** These workers take single items even if the peer batches internally, so the aim applies to batches too. */
const aimedAtInBatches: readonly string[] = ['graphile-worker']
const httpAim = 0.7

export async function benchQueue({ rounds, isQuick, log }: BenchOptions): Promise<BenchResult> {
  // Fail before the benchmark starts, not after minutes.
  for (const name of ['pg-boss', 'graphile-worker', 'bullmq', 'ioredis']) await loadPeer(name)
  const server = await startBenchPostgres()
  if (!server.isFound) throw new UnmetRequirement(`the queue benchmark needs PostgreSQL: ${server.reason}`)
  const cache = await getRedis()
  const undo = cache.isFound ? await makeRedisDurable(cache.url) : undefined
  if (!cache.isFound) log(`BullMQ is skipped: ${cache.reason}`)

  const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'))
  const databases: Database[] = []
  const createUrl = async () => {
    const database = await createDatabaseOn(server.url)
    databases.push(database)
    return database.url
  }
  let files = 0
  const createFile = () => join(folder, `${++files}.db`)
  const peers: readonly Peer[] = [
    createRedrivePeer(ours, async () => ({ kind: 'postgres', url: await createUrl() })),
    createRedrivePeer(oursOnFile, async () => ({ kind: 'sqlite', path: createFile() })),
    createPgBossPeer(createUrl),
    createGraphileWorkerPeer(createUrl),
    ...(cache.isFound ? [createBullmqPeer(cache.url)] : []),
  ]
  const items = isQuick ? itemsMax / 10 : itemsMax
  try {
    const measured: Measured[][] = []
    for (let round = 1; round <= rounds; round++) {
      for (const peer of peers) {
        log(`round ${round} of ${rounds}: ${peer.name}`)
        for (const shape of shapes) {
          // The next peer must not pay for writes that the previous one left in the buffers.
          await checkpoint(server.url)
          measured.push(await benchPeer(peer, shape, items, () => analyze(databases)))
          await Promise.all(databases.splice(0).map(dropWhenUnused))
        }
      }
      log(`round ${round} of ${rounds}: over HTTP`)
      measured.push(
        await benchHttp({
          seconds: isQuick ? 3 : 10,
          targets: {
            [ours]: { kind: 'postgres', url: await createUrl() },
            [oursOnFile]: { kind: 'sqlite', path: createFile() },
          },
        }),
      )
      await Promise.all(databases.splice(0).map(dropWhenUnused))
    }
    const best = selectBest(measured)
    return {
      measured: best,
      ratios: computeRatios(best),
      notes: [server.description, ...peers.map(({ name, calls }) => `${name}: ${calls}`)],
    }
  } finally {
    await undo?.()
    await stopServices()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function benchPeer(
  peer: Peer,
  { batch, callers }: (typeof shapes)[number],
  items: number,
  settle: () => Promise<void>,
): Promise<Measured[]> {
  const opened = await peer.open(batch)
  try {
    const what = { subject: peer.name, batch, callers }
    const measured: Measured[] = []
    let produced = 0
    const produceOnce = async () => {
      await opened.produce(batch)
      produced += batch
      return batch
    }
    measured.push(await measureItems({ ...what, operation: produce }, { items, msMax }, produceOnce))
    if (opened.consume === null) return measured
    while (produced < items) {
      const count = Math.min(items - produced, batchMax)
      await opened.produce(count)
      produced += count
    }
    await settle()
    if (opened.consume.kind === 'calls') {
      const { call, alsoWith = [] } = opened.consume
      let best = await measureItems({ ...what, operation: consume }, { items, msMax }, call)
      for (const others of alsoWith) {
        const how = { ...what, operation: consume, callers: others }
        const tried = await measureItems(how, { items, msMax }, call)
        if (tried.perSecond > best.perSecond) best = tried
      }
      measured.push(best)
    } else {
      const drained = await opened.consume.drain(items, msMax)
      const perSecond = drained.items / drained.seconds
      measured.push({
        ...what,
        operation: consume,
        callers: callersMax,
        perSecond,
        p50Ms: null,
        p99Ms: null,
      })
    }
    return measured
  } finally {
    await opened.close()
  }
}

function computeRatios(measured: readonly Measured[]): Ratio[] {
  return measured.flatMap((one) => {
    if (one.operation === httpOperation) return compareWithEmptyHandler(one, measured)
    return isOurs(one) ? compareWithPeers(one, measured) : []
  })
}

function compareWithEmptyHandler(one: Measured, measured: readonly Measured[]): Ratio[] {
  const empty = measured.find(({ subject }) => subject === httpSubjects.empty)
  return empty === undefined || one === empty ? [] : [compareRates(one, empty, httpAim)]
}

function compareWithPeers(one: Measured, measured: readonly Measured[]): Ratio[] {
  return measured
    .filter((other) => !isOurs(other) && other.operation === one.operation && other.batch === one.batch)
    .map((other) => {
      const hasAim = one.subject === ours && (one.batch === 1 || aimedAtInBatches.includes(other.subject))
      return compareRates(one, other, (hasAim ? aims[other.subject]?.[one.operation] : undefined) ?? null)
    })
}

function isOurs({ subject }: Measured): boolean {
  return subject === ours || subject === oursOnFile
}

function compareRates(one: Measured, other: Measured, aim: number | null): Ratio {
  const { subject, operation, batch, perSecond } = one
  const times = perSecond / other.perSecond
  return { subject, operation, batch, against: other.subject, times, aim }
}

async function checkpoint(url: string): Promise<void> {
  const client = createPgClient(url)
  await client.connect()
  await client.query('checkpoint')
  await client.end()
}

/**
 * A database in production has current statistics. Without them, the plans for an empty table would be
 * measured.
 */
async function analyze(databases: readonly Database[]): Promise<void> {
  for (const { url } of databases) {
    const client = createPgClient(url)
    await client.connect()
    await client.query('analyze')
    await client.end()
  }
}

/**
 * Pools report that they have ended shortly before their sessions do; a session that is cut off logs an
 * error.
 */
async function dropWhenUnused(database: Database): Promise<void> {
  const client = createPgClient(database.url)
  await client.connect()
  const others = `select 1 from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
  await waitUntil(async () => (await client.query(others)).rows.length === 0, 10_000)
  await client.end()
  await database.drop()
}
