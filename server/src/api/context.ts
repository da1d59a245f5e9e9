import type { Clock } from '../core/instant.ts'
import type { Engine } from '../engine/engine.ts'
import type { Letters } from '../letters/letters.ts'
import type { Health } from '../ops/health.ts'
import type { Logger } from '../ops/log.ts'
import type { Metrics } from '../ops/metrics.ts'
import type { Storage } from '../storage/contract/storage.ts'
import type { DlqLimits } from './dlq/limits.ts'
import type { HttpLimits } from './http/http-limits.ts'
import type { LeaseCalls } from './lease-calls.ts'
import type { QueueApiLimits } from './queue/limits.ts'

/** Everything that handlers may use. They get nothing else of the server. */
export type ApiContext = Readonly<{
  version: string
  clock: Clock
  startedAt: Date
  limits: HttpLimits
  queueLimits: QueueApiLimits
  dlqLimits: DlqLimits
  leaseCalls: LeaseCalls
  storeKind: 'sqlite' | 'memory' | 'postgres'
  /** Throws STORE_UNAVAILABLE while there is no store. */
  storage: () => Storage
  /** The same: throws STORE_UNAVAILABLE while there is no store. */
  engine: () => Engine
  /** The same. */
  letters: () => Letters
  health: () => Health
  metrics: Pick<Metrics, 'contentType' | 'render'>
  /** The description of the API as JSON text. */
  openapi: () => string
  /** Aborts when the server begins to stop: what waits for something should answer now. */
  stopping: AbortSignal
  log: Logger
}>
