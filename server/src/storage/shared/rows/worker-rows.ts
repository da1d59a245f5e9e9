/** The rows of the tables of workers, which have the same columns in both stores. */
import type {
  HeartbeatSource,
  ObservationClock,
  Worker,
  WorkerKey,
  WorkerStatus,
} from '../../../core/watching/worker.ts'
import type { EventTotal, WorkerRetries } from '../../contract/workers.ts'
import { type DatabaseRow, readJson, readNumber, readNumberOrNull, readText } from './row-values.ts'

export const workerColumns = [
  'namespace',
  'type',
  'instance',
  'source',
  'status',
  'first_seen_at',
  'last_seen_at',
  'last_seen_tick',
  'status_since',
  'sent_at',
  'last_message_at',
  'idle_from',
  'lag',
  'retries',
] as const

/** The values in the order of `workerColumns`. */
export function toWorkerRow(worker: Worker): readonly (string | number | null)[] {
  return [
    worker.namespace,
    worker.type,
    worker.instanceId,
    worker.source,
    worker.status,
    worker.firstSeenAt,
    worker.lastSeenAt,
    worker.lastSeenTick,
    worker.statusSince,
    worker.sentAt,
    worker.lastMessageAt,
    worker.idleFrom,
    worker.lag,
    JSON.stringify(worker.retries),
  ]
}

const noRetries = Object.freeze({})

export function toWorker(row: DatabaseRow): Worker {
  const retries = readText(row, 'retries')
  return {
    namespace: readText(row, 'namespace'),
    type: readText(row, 'type'),
    instanceId: readText(row, 'instance'),
    source: readText(row, 'source') as HeartbeatSource,
    status: readText(row, 'status') as WorkerStatus,
    firstSeenAt: readNumber(row, 'first_seen_at'),
    lastSeenAt: readNumber(row, 'last_seen_at'),
    lastSeenTick: readNumber(row, 'last_seen_tick'),
    statusSince: readNumber(row, 'status_since'),
    sentAt: readNumberOrNull(row, 'sent_at'),
    lastMessageAt: readNumberOrNull(row, 'last_message_at'),
    idleFrom: readNumberOrNull(row, 'idle_from'),
    lag: readNumberOrNull(row, 'lag'),
    retries: retries === '{}' ? noRetries : readJson<Worker['retries']>(row, 'retries'),
  }
}

export function toObservationClock(row: DatabaseRow): ObservationClock {
  return {
    name: readText(row, 'name'),
    startedAt: readNumber(row, 'started_at'),
    observedAt: readNumber(row, 'observed_at'),
    pausedUs: readNumber(row, 'paused_us'),
  }
}

export function toWorkerRetries(row: DatabaseRow): WorkerRetries {
  return {
    namespace: readText(row, 'namespace'),
    type: readText(row, 'type'),
    error: readText(row, 'error'),
    count: readNumber(row, 'count'),
  }
}

export function toEventTotal(row: DatabaseRow): EventTotal {
  return { name: readText(row, 'name'), label: readText(row, 'label'), count: readNumber(row, 'count') }
}

/** Identifies a worker in a map. No part of a key contains the separator. */
export function keyOfWorker({ namespace, type, instanceId }: WorkerKey): string {
  return `${namespace}\n${type}\n${instanceId}`
}
