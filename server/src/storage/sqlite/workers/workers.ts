/** The registry of workers: their heartbeats, clocks and retries. */
import type { ObservationClock, Worker, WorkerKey } from '../../../core/watching/worker.ts'
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
import { limitErrors, planHeartbeats } from '../../shared/workers/plan-heartbeats.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Bound, Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

const columns = workerColumns.join(', ')
const selectWorker = `select ${columns} from workers where namespace = ? and type = ? and instance = ?`
const updates = workerColumns.slice(3).map((name) => `${name} = excluded.${name}`)
const upsertWorker = `insert into workers (${columns}) values (${workerColumns.map(() => '?').join(', ')})
  on conflict (namespace, type, instance) do update set ${updates.join(', ')}`

export function recordHeartbeats({ database }: Transaction, command: RecordHeartbeats): RecordedHeartbeats {
  const known = readKnown(database, command.heartbeats)
  const hasUnknown = command.heartbeats.some((each) => !known.has(keyOfWorker(each)))
  const count = hasUnknown ? countWorkers(database) : 0
  const plan = planHeartbeats(command, known, readClocks(database), command.workersMax - count)
  for (const clock of plan.clocks) putClock(database, clock)
  for (const worker of plan.workers) database.run(upsertWorker, ...toWorkerRow(worker))
  if (plan.retries.length > 0) addRetries(database, plan.retries)
  return { changed: plan.workers.length, refused: plan.refused }
}

function readKnown(database: Database, keys: readonly WorkerKey[]): Map<string, Worker> {
  const known = new Map<string, Worker>()
  for (const key of keys) {
    const row = database.get(selectWorker, key.namespace, key.type, key.instanceId)
    if (row !== undefined) known.set(keyOfWorker(key), toWorker(row))
  }
  return known
}

function countWorkers(database: Database): number {
  return readNumber(database.get('select count(*) as count from workers') ?? {}, 'count')
}

function readClocks(database: Database): ObservationClock[] {
  return database.all('select * from observation_clocks order by name').map(toObservationClock)
}

function putClock(database: Database, { name, startedAt, observedAt, pausedUs }: ObservationClock): void {
  database.run(
    `insert into observation_clocks (name, started_at, observed_at, paused_us) values (?, ?, ?, ?)
       on conflict (name) do update set observed_at = excluded.observed_at, paused_us = excluded.paused_us`,
    name,
    startedAt,
    observedAt,
    pausedUs,
  )
}

function addRetries(database: Database, retries: readonly WorkerRetries[]): void {
  const stored = listRetries(database)
  for (const { namespace, type, error, count } of limitErrors(retries, stored)) {
    database.run(
      `insert into worker_retries (namespace, type, error, count) values (?, ?, ?, ?)
         on conflict (namespace, type, error) do update set count = count + excluded.count`,
      namespace,
      type,
      error,
      count,
    )
  }
}

function listRetries(database: Database): WorkerRetries[] {
  return database.all('select * from worker_retries order by namespace, type, error').map(toWorkerRetries)
}

export function forgetWorkers(
  { database }: Transaction,
  { workers, audit }: ForgetWorkers,
): { forgotten: number } {
  let forgotten = 0
  for (const { namespace, type, instanceId, lastSeenAt } of workers) {
    forgotten += database.run(
      `delete from workers where namespace = ? and type = ? and instance = ?
         and last_seen_at <= coalesce(?, last_seen_at)`,
      namespace,
      type,
      instanceId,
      lastSeenAt ?? null,
    )
  }
  if (audit !== undefined && forgotten > 0) insertAudit(database, [audit])
  return { forgotten }
}

export function addEventTotals({ database }: Transaction, { totals }: AddEventTotals): undefined {
  for (const { name, label, count } of totals) {
    database.run(
      `insert into event_totals (name, label, count) values (?, ?, ?)
         on conflict (name, label) do update set count = count + excluded.count`,
      name,
      label,
      count,
    )
  }
}

export function listWorkers(database: Database, query: WorkersQuery): Worker[] {
  const { namespaces, type, instanceId, after, countMax } = query
  const conditions: string[] = ['true']
  const values: Bound[] = []
  const add = (condition: string, ...bound: Bound[]): void => {
    conditions.push(condition)
    values.push(...bound)
  }
  if (namespaces !== undefined)
    add('namespace in (select value from json_each(?))', JSON.stringify(namespaces))
  if (type !== undefined) add('type = ?', type)
  if (instanceId !== undefined) add('instance = ?', instanceId)
  if (after !== undefined)
    add('(namespace, type, instance) > (?, ?, ?)', after.namespace, after.type, after.instanceId)
  const sql = `select ${columns} from workers where ${conditions.join(' and ')}
    order by namespace, type, instance limit ?`
  return database.all(sql, ...values, countMax).map(toWorker)
}

export function readWatchRecords(database: Database): WatchRecords {
  return {
    clocks: readClocks(database),
    retries: listRetries(database),
    totals: database.all('select * from event_totals order by name, label').map(toEventTotal),
  }
}
