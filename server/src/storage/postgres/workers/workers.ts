/**
 * The registry of workers: their heartbeats, clocks and retries. Each batch of heartbeats locks the clock of
 * HTTP first, so batches of several servers are written one after the other.
 */
import type { ObservationClock, Worker } from '../../../core/watching/worker.ts'
import type {
  AddEventTotals,
  ForgetWorkers,
  RecordedHeartbeats,
  RecordHeartbeats,
  WatchRecords,
  WorkerRetries,
  WorkersQuery,
} from '../../contract/workers.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import {
  keyOfWorker,
  toEventTotal,
  toObservationClock,
  toWorker,
  toWorkerRetries,
  toWorkerRow,
  workerColumns,
} from '../../shared/rows/worker-rows.ts'
import { limitErrors, listClocks, planHeartbeats } from '../../shared/workers/plan-heartbeats.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { prepareStatement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

const columns = workerColumns.join(', ')
const textsFirst = 5
const isText = (at: number): boolean => at < textsFirst || workerColumns[at] === 'retries'

const lockClocks: Statement = {
  name: 'lock-observation-clocks',
  text: `insert into redrive.observation_clocks as c (name, started_at, observed_at, paused_us)
    select n.name, $2, $2, 0 from unnest($1::text[]) as n(name)
    on conflict (name) do update set paused_us = c.paused_us
    returning c.name, c.started_at, c.observed_at, c.paused_us`,
}
const updateClocks: Statement = {
  name: 'update-observation-clocks',
  text: `update redrive.observation_clocks c set observed_at = n.observed_at, paused_us = n.paused_us
    from unnest($1::text[], $2::int8[], $3::int8[]) as n(name, observed_at, paused_us)
    where c.name = n.name returning 1`,
}
const selectKnown: Statement = {
  name: 'read-known-workers',
  text: `select ${workerColumns.map((name) => `w.${name}`).join(', ')} from redrive.workers w
    join unnest($1::text[], $2::text[], $3::text[]) as k(namespace, type, instance)
      using (namespace, type, instance)`,
}
const upsertWorkers: Statement = {
  name: 'upsert-workers',
  text: `insert into redrive.workers (${columns})
    select * from unnest(${workerColumns.map((_, at) => `$${at + 1}::${isText(at) ? 'text' : 'int8'}[]`).join(', ')})
    on conflict (namespace, type, instance) do update set
      ${workerColumns
        .slice(3)
        .map((name) => `${name} = excluded.${name}`)
        .join(', ')}`,
}

export async function recordHeartbeats(
  { connection }: Transaction,
  command: RecordHeartbeats,
): Promise<RecordedHeartbeats> {
  const names = listClocks(command)
  const clocks = (await connection.query(lockClocks, [encodeTexts(names), command.now])).map(
    toObservationClock,
  )
  const known = await readKnown(connection, command.heartbeats)
  const hasUnknown = command.heartbeats.some((each) => !known.has(keyOfWorker(each)))
  const count = hasUnknown ? await countWorkers(connection) : 0
  const plan = planHeartbeats(command, known, clocks, command.workersMax - count)
  await connection.query(updateClocks, encodeClocks(plan.clocks))
  if (plan.workers.length > 0) await connection.query(upsertWorkers, encodeWorkers(plan.workers))
  if (plan.retries.length > 0) await addRetries(connection, plan.retries)
  return { changed: plan.workers.length, refused: plan.refused }
}

async function readKnown(
  connection: Connection,
  keys: RecordHeartbeats['heartbeats'],
): Promise<Map<string, Worker>> {
  if (keys.length === 0) return new Map()
  const rows = await connection.query(selectKnown, [
    encodeTexts(keys.map(({ namespace }) => namespace)),
    encodeTexts(keys.map(({ type }) => type)),
    encodeTexts(keys.map(({ instanceId }) => instanceId)),
  ])
  return new Map(rows.map(toWorker).map((worker) => [keyOfWorker(worker), worker]))
}

async function countWorkers(connection: Connection): Promise<number> {
  const [row] = await connection.query({
    name: 'count-workers',
    text: 'select count(*)::int8 as count from redrive.workers',
  })
  return readNumber(row ?? {}, 'count')
}

function encodeClocks(clocks: readonly ObservationClock[]): Buffer[] {
  return [
    encodeTexts(clocks.map(({ name }) => name)),
    encodeInt8s(clocks.map(({ observedAt }) => observedAt)),
    encodeInt8s(clocks.map(({ pausedUs }) => pausedUs)),
  ]
}

function encodeWorkers(workers: readonly Worker[]): Buffer[] {
  const rows = workers.map(toWorkerRow)
  return workerColumns.map((_, at) => {
    const values = rows.map((row) => row[at] ?? null)
    // The values of a column have one type, which the type of a row cannot express.
    return isText(at) ? encodeTexts(values as (string | null)[]) : encodeInt8s(values as (number | null)[])
  })
}

const selectRetries: Statement = {
  name: 'list-worker-retries',
  text: 'select namespace, type, error, count from redrive.worker_retries order by namespace, type, error',
}

async function addRetries(connection: Connection, retries: readonly WorkerRetries[]): Promise<void> {
  const stored = (await connection.query(selectRetries)).map(toWorkerRetries)
  const added = limitErrors(retries, stored)
  await connection.query(
    {
      name: 'add-worker-retries',
      text: `insert into redrive.worker_retries as r (namespace, type, error, count)
        select * from unnest($1::text[], $2::text[], $3::text[], $4::int8[])
        on conflict (namespace, type, error) do update set count = r.count + excluded.count`,
    },
    [
      encodeTexts(added.map(({ namespace }) => namespace)),
      encodeTexts(added.map(({ type }) => type)),
      encodeTexts(added.map(({ error }) => error)),
      encodeInt8s(added.map(({ count }) => count)),
    ],
  )
}

export async function forgetWorkers(
  { connection }: Transaction,
  { workers, audit }: ForgetWorkers,
): Promise<{ forgotten: number }> {
  const removed = await connection.query(
    {
      name: 'forget-workers',
      text: `delete from redrive.workers w
        using unnest($1::text[], $2::text[], $3::text[], $4::int8[]) as k(namespace, type, instance, seen_at)
        where w.namespace = k.namespace and w.type = k.type and w.instance = k.instance
          and w.last_seen_at <= coalesce(k.seen_at, w.last_seen_at) returning 1`,
    },
    [
      encodeTexts(workers.map(({ namespace }) => namespace)),
      encodeTexts(workers.map(({ type }) => type)),
      encodeTexts(workers.map(({ instanceId }) => instanceId)),
      encodeInt8s(workers.map(({ lastSeenAt }) => lastSeenAt ?? null)),
    ],
  )
  if (audit !== undefined && removed.length > 0) await insertAudit(connection, [audit])
  return { forgotten: removed.length }
}

export async function addEventTotals(
  { connection }: Transaction,
  { totals }: AddEventTotals,
): Promise<undefined> {
  // One order for all servers, so that two of them do not wait for each other in a circle.
  const sorted = totals.toSorted((a, b) => (`${a.name}\n${a.label}` < `${b.name}\n${b.label}` ? -1 : 1))
  await connection.query(
    {
      name: 'add-event-totals',
      text: `insert into redrive.event_totals as t (name, label, count)
        select * from unnest($1::text[], $2::text[], $3::int8[])
        on conflict (name, label) do update set count = t.count + excluded.count`,
    },
    [
      encodeTexts(sorted.map(({ name }) => name)),
      encodeTexts(sorted.map(({ label }) => label)),
      encodeInt8s(sorted.map(({ count }) => count)),
    ],
  )
}

export async function listWorkers(connections: Connections, query: WorkersQuery): Promise<Worker[]> {
  const { namespaces, type, instanceId, after, countMax } = query
  const conditions: string[] = ['true']
  const values: unknown[] = []
  const bind = (value: unknown): string => `$${values.push(value)}`
  if (namespaces !== undefined) conditions.push(`namespace = any(${bind(namespaces)}::text[])`)
  if (type !== undefined) conditions.push(`type = ${bind(type)}`)
  if (instanceId !== undefined) conditions.push(`instance = ${bind(instanceId)}`)
  if (after !== undefined) {
    const key = [after.namespace, after.type, after.instanceId].map((each) => `${bind(each)}::text`)
    conditions.push(`(namespace, type, instance) > (${key.join(', ')})`)
  }
  const text = `select ${columns} from redrive.workers where ${conditions.join(' and ')}
    order by namespace, type, instance limit ${bind(countMax)}::int8`
  return (await connections.read(prepareStatement(text), values)).map(toWorker)
}

export async function readWatchRecords(connections: Connections): Promise<WatchRecords> {
  const [clocks, retries, totals] = await Promise.all([
    connections.read({ text: 'select * from redrive.observation_clocks order by name' }),
    connections.read(selectRetries),
    connections.read({ text: 'select * from redrive.event_totals order by name, label' }),
  ])
  return {
    clocks: clocks.map(toObservationClock),
    retries: retries.map(toWorkerRetries),
    totals: totals.map(toEventTotal),
  }
}
