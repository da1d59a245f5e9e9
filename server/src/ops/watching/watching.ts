/**
 * The watch over workers and consumer groups.
 *
 * Workers report over HTTP (`receive`) or through Redis. Each `pass` writes the heartbeats that arrived,
 * reads those in Redis, and evaluates the rules on what the store has (evaluate.ts). Findings are computed
 * from the store, so all servers on a store have the same.
 *
 * `heartbeats/` has the ways of heartbeats into the store, `health.ts` the report for `/actuator/health`.
 */
import type { Finding } from '../../core/watching/findings.ts'
import type { Heartbeat, WorkerRules } from '../../core/watching/worker.ts'
import type { EngineEvent } from '../../engine/events.ts'
import type { WatchReport } from './evaluate.ts'

export interface Watching {
  readonly rules: WorkerRules
  /**
   * Takes heartbeats that arrived over HTTP. Heartbeats that change the state of a worker are stored when
   * it resolves; the others follow with the next pass. `refused`: the positions of unknown workers beyond the
   * limit.
   */
  receive(heartbeats: readonly NewHeartbeat[]): Promise<Readonly<{ refused: readonly number[] }>>
  /** Counts an event, so that the totals of all servers are in the store. */
  count(event: EngineEvent): void
  /** Counts a comparison of the counts with their rows by this server. `differences`: wrong counts. */
  countComparison(differences: number): void
  pass(): Promise<void>
  /**
   * Everything that is not as it should be now, the worst first, at most `findingsMax`. A finding is
   * identified by its rule, namespace and subject, and ends when it is no longer in the list.
   */
  readFindings(): Promise<readonly Finding[]>
  /** The report of the last pass of this server; null: none has ended yet. */
  peekReport(): WatchReport | null
  redis(): RedisState
  /** Writes what has not been written yet. */
  close(): Promise<void>
}

export type NewHeartbeat = Omit<Heartbeat, 'receivedAt' | 'source'>

/** The state of the connection to Redis, read without waiting. */
export type RedisState = Readonly<{
  isConfigured: boolean
  /** Why Redis cannot be read; null: it can. */
  reason: string | null
  changedAt: number
  /** Keys that are no heartbeats, as one sentence; null: there are none. */
  unreadable: string | null
}>

export const findingsMax = 1_000
