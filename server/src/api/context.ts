import type { IncomingMessage } from 'node:http'
import type { Access } from '../access/access.ts'
import type { Clock } from '../core/time/instant.ts'
import type { Kafka } from '../drivers/kafka/kafka.ts'
import type { Notifier } from '../drivers/notify/create-notifier.ts'
import type { Webhooks } from '../drivers/webhook/webhooks.ts'
import type { Engine } from '../engine/engine.ts'
import type { Letters } from '../letters/letters.ts'
import type { Alerts } from '../ops/alerts/alerts.ts'
import type { ActuatorHealth } from '../ops/health/actuator-health.ts'
import type { Health } from '../ops/health/health.ts'
import type { Logger } from '../ops/log/log.ts'
import type { Metrics } from '../ops/metrics/metrics.ts'
import type { Watching } from '../ops/watching/watching.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { BodyThread } from './body-thread/body-thread.ts'
import type { DlqLimits } from './dlq/limits.ts'
import type { HttpLimits } from './http/connections/http-limits.ts'
import type { LeaseCalls } from './lease-calls.ts'
import type { QueueApiLimits } from './queue/limits.ts'
import type { WebhookGateway, WebhookOptions } from './webhook/options.ts'

/** The parts of the server that request handlers may use. */
export type ApiContext = Readonly<{
  version: string
  clock: Clock
  startedAt: Date
  limits: HttpLimits
  queueLimits: QueueApiLimits
  dlqLimits: DlqLimits
  leaseCalls: LeaseCalls
  bodyThread: BodyThread
  storeKind: 'sqlite' | 'memory' | 'postgres'
  /** Throws STORE_UNAVAILABLE while the store cannot be reached. */
  storage: () => StoreReads
  /** Throws STORE_UNAVAILABLE while the store cannot be reached. */
  engine: () => Engine
  /** Throws STORE_UNAVAILABLE while the store cannot be reached. */
  letters: () => Letters
  /** Throws STORE_UNAVAILABLE while the store cannot be reached. */
  webhooks: () => Webhooks
  webhookOptions: WebhookOptions
  /** The signatures of a gateway; null: requests to the webhook API are not signed. */
  webhookGateway: WebhookGateway | null
  /** Throws STORE_UNAVAILABLE while the store cannot be reached. */
  access: () => Access
  kafka: Pick<Kafka, 'clusters' | 'health' | 'listFigures' | 'listReaders'>
  watching: Pick<Watching, 'rules' | 'receive' | 'readFindings' | 'peekReport'>
  notifier: Pick<Notifier, 'channels' | 'sendTest'>
  alerts: Pick<Alerts, 'rules' | 'decide'>
  health: () => Health
  /** The report with everything that the server watches. */
  readActuator: () => ActuatorHealth
  metrics: Pick<Metrics, 'contentType' | 'render'>
  /** For the sessions of browsers. */
  signIn: Readonly<{ isRequired: boolean; isSecure(request: IncomingMessage): boolean }>
  /** Returns the OpenAPI document as JSON text. */
  openapi: () => string
  /** Aborts when the server begins to stop: handlers that wait should answer now. */
  stopping: AbortSignal
  log: Logger
}>
