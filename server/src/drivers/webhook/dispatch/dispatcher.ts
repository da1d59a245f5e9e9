/** The dispatcher, as the server and the API use it. */
import type { DeliveryStatus } from '../../../core/webhook/delivery/consumer-delivery.ts'
import type { DispatchRules } from './delivery-rules.ts'

export interface Dispatcher {
  readonly rules: DispatchRules
  start(): void
  /** Background work that a test can call: health, figures, consumers that other servers changed. */
  pass(): Promise<void>
  /** Why a push to this URL would be refused; undefined: it would not, as far as the URL shows. */
  checkUrl(url: string): string | undefined
  counts(): DispatchCounts
  /** Leases no more jobs, returns those that have not started, and waits for pushes up to `graceMs`. */
  stop(graceMs: number): Promise<void>
}

export type DispatchCounts = Readonly<{
  consumers: number
  /** Leased jobs in memory that no push has started for. */
  queued: number
  inFlight: number
  /** Outcomes that are not stored yet. */
  unwritten: number
  /** The servers that pushed in the last minutes, with this one. They share the limits of a consumer. */
  servers: number
  consumersByStatus: Readonly<Record<DeliveryStatus, number>>
}>
