/**
 * Redrive beside its peers, in one run on one machine: every answered write is on the disk for all of
 * them (PostgreSQL with fsync and synchronous_commit on, Redis with appendfsync always, SQLite with
 * synchronous full).
 *
 * For each peer and shape there is a fresh store. It is produced into, then filled up to the same number
 * of items without a clock running, then drained. Who is slow is stopped after `msMax`, and its rate
 * is that of what it did by then.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { getRedis, stopServices } from '../tools/services/index.ts'
import { createDatabaseOn, type Database } from '../tools/services/postgres/database.ts'
import type { BenchOptions } from './arguments.ts'
import { CannotRun } from './cannot-run.ts'
import { benchHttp, httpOperation, httpSubjects } from './http.ts'
import { bullmq, makeRedisDurable } from './peers/bullmq.ts'
import { graphileWorker } from './peers/graphile-worker.ts'
import { callersMax, loadPeer, type Peer, waitUntil } from './peers/peer.ts'
import { pgBoss } from './peers/pg-boss.ts'
import { redrive } from './peers/redrive.ts'
import { benchPostgres } from './postgres.ts'
import { type BenchResult, bestOf, type Measured, measureItems, type Ratio } from './report.ts'

const itemsMax = 100_000
const batchMax = 1_000
const msMax = 15_000
const shapes = [
  { batch: 1, callers: callersMax },
  // So many at once that more callers would only wait.
  { batch: batchMax, callers: 4 },
] as const
const ours = 'Redrive, PostgreSQL'
const oursOnFile = 'Redrive, SQLite file'
const produce = 'produce'
const consume = 'lease+complete'

/** Of single calls. */
const aims: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'pg-boss': { [produce]: 20, [consume]: 100 },
  BullMQ: { [produce]: 3, [consume]: 4 },
  'graphile-worker': { [consume]: 2 },
}
/** Its workers take single items also when it batches underneath, so there the aim holds as well. */
const aimedAtInBatches: readonly string[] = ['graphile-worker']
const httpAim = 0.7

export async function benchQueue({ rounds, isQuick, say }: BenchOptions): Promise<BenchResult> {
  // Said at once, not after minutes.
  for (const name of ['pg-boss', 'graphile-worker', 'bullmq', 'ioredis']) await loadPeer(name)
  const server = await benchPostgres()
  if (!server.isFound) throw new CannotRun(`the queue benchmark needs PostgreSQL: ${server.reason}`)
  const cache = await getRedis()
  const undo = cache.isFound ? await makeRedisDurable(cache.url) : undefined
  if (!cache.isFound) say(`BullMQ is left out: ${cache.reason}`)

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
    redrive(ours, async () => ({ kind: 'postgres', url: await createUrl() })),
    redrive(oursOnFile, async () => ({ kind: 'sqlite', path: createFile() })),
    pgBoss(createUrl),
    graphileWorker(createUrl),
    ...(cache.isFound ? [bullmq(cache.url)] : []),
  ]
  const items = isQuick ? itemsMax / 10 : itemsMax
  try {
    const measured: Measured[][] = []
    for (let round = 1; round <= rounds; round++) {
      for (const peer of peers) {
        say(`round ${round} of ${rounds}: ${peer.name}`)
        for (const shape of shapes) {
          // So that nobody pays for what the one before left to be written.
          await checkpoint(server.url)
          measured.push(await benchPeer(peer, shape, items, () => analyze(databases)))
          await Promise.all(databases.splice(0).map(dropWhenLeft))
        }
      }
      say(`round ${round} of ${rounds}: over HTTP`)
      measured.push(
        await benchHttp({
          seconds: isQuick ? 3 : 10,
          targets: {
            [ours]: { kind: 'postgres', url: await createUrl() },
            [oursOnFile]: { kind: 'sqlite', path: createFile() },
          },
        }),
      )
      await Promise.all(databases.splice(0).map(dropWhenLeft))
    }
    const best = bestOf(measured)
    return {
      measured: best,
      ratios: ratiosOf(best),
      notes: [server.about, ...peers.map(({ name, calls }) => `${name}: ${calls}`)],
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

function ratiosOf(measured: readonly Measured[]): Ratio[] {
  const ratios: Ratio[] = []
  const compare = (one: Measured, other: Measured, aim: number | null) => {
    const { subject, operation, batch } = one
    ratios.push({
      subject,
      operation,
      batch,
      against: other.subject,
      times: one.perSecond / other.perSecond,
      aim,
    })
  }
  for (const one of measured) {
    if (one.operation === httpOperation) {
      const empty = measured.find(({ subject }) => subject === httpSubjects.empty)
      if (empty !== undefined && one !== empty) compare(one, empty, httpAim)
    } else if (one.subject === ours || one.subject === oursOnFile) {
      for (const other of measured) {
        if (other.operation !== one.operation || other.batch !== one.batch) continue
        if (other.subject === ours || other.subject === oursOnFile) continue
        const isAimedAt =
          one.subject === ours && (one.batch === 1 || aimedAtInBatches.includes(other.subject))
        compare(one, other, (isAimedAt ? aims[other.subject]?.[one.operation] : undefined) ?? null)
      }
    }
  }
  return ratios
}

async function checkpoint(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('checkpoint')
  await client.end()
}

/** A database in use has done so by itself. Without it, a peer's plans for a table that was empty a moment ago are measured. */
async function analyze(databases: readonly Database[]): Promise<void> {
  for (const { url } of databases) {
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query('analyze')
    await client.end()
  }
}

/** Pools say that they have ended a moment before their sessions have; one that is cut fails loudly. */
async function dropWhenLeft(database: Database): Promise<void> {
  const client = new Client({ connectionString: database.url })
  await client.connect()
  const others = `select 1 from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
  await waitUntil(async () => (await client.query(others)).rows.length === 0, 10_000)
  await client.end()
  await database.drop()
}
