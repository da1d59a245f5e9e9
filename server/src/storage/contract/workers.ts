/**
 * The registry of workers, the clocks by which their silence is measured, and totals of events.
 *
 * Heartbeats are written in batches: the rows of a batch are read, `core/watching` decides what changes, and
 * the changed rows are written, in one transaction. So two servers that receive the heartbeats of one worker
 * agree on it.
 */
import type { Instant } from '../../core/time/instant.ts'
import type { Heartbeat, ObservationClock, Worker, WorkerKey } from '../../core/watching/worker.ts'
import type { AuditEntry } from './audit.ts'

export type WorkerCommand = RecordHeartbeats | ForgetWorkers | AddEventTotals

export type WorkerResults = {
  'record-heartbeats': RecordedHeartbeats
  'forget-workers': { forgotten: number }
  'add-event-totals': undefined
}

export interface WorkerStore {
  /** In byte order of namespace, type and instance id. */
  listWorkers(query: WorkersQuery): Promise<readonly Worker[]>
  readWatchRecords(): Promise<WatchRecords>
}

export type WorkersQuery = Readonly<{
  namespaces?: readonly string[]
  type?: string
  instanceId?: string
  /** Only workers behind this one. */
  after?: WorkerKey
  countMax: number
}>

export type WatchRecords = Readonly<{
  clocks: readonly ObservationClock[]
  retries: readonly WorkerRetries[]
  totals: readonly EventTotal[]
}>

/** Failed attempts that the workers of a type reported. */
export type WorkerRetries = Readonly<{ namespace: string; type: string; error: string; count: number }>

/** Events since the creation of the store, on all servers. `label`: empty, or a value such as an outcome. */
export type EventTotal = Readonly<{ name: string; label: string; count: number }>

export type RecordHeartbeats = Readonly<{
  op: 'record-heartbeats'
  /** In the order in which they were received. */
  heartbeats: readonly Heartbeat[]
  /** The clocks that were observed until now; the clocks of the heartbeats are always observed. */
  observed: readonly string[]
  now: Instant
  /** Beyond this number of workers, unknown ones are not stored. */
  workersMax: number
}>
/** `refused`: the positions of heartbeats of unknown workers that were not stored. */
export type RecordedHeartbeats = Readonly<{ changed: number; refused: readonly number[] }>

/** Removes workers. Their next heartbeat adds them again. */
export type ForgetWorkers = Readonly<{
  op: 'forget-workers'
  /** `lastSeenAt`: only if no later heartbeat arrived. */
  workers: readonly Readonly<WorkerKey & { lastSeenAt?: Instant }>[]
  /** Written if a worker was removed. */
  audit?: AuditEntry
}>

export type AddEventTotals = Readonly<{ op: 'add-event-totals'; totals: readonly EventTotal[] }>
