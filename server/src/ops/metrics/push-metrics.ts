/** Metrics of the pushes to webhook consumers. Their labels are results and states, so they are bounded. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export type PushMetrics = Readonly<{
  /** `result`: `delivered`, or the kind of the failure. */
  count(result: string, latencyMs: number): void
  register(registry: Registry, read: () => DispatchFigures | undefined): void
}>

export type DispatchFigures = Readonly<{
  queued: number
  inFlight: number
  unwritten: number
  consumersByStatus: Readonly<Record<string, number>>
}>

/** In seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** The metrics are in no registry yet, because the store is opened before they are registered. */
export function createPushMetrics(): PushMetrics {
  const attempts = new Counter({
    name: 'redrive_webhook_attempts_total',
    help: 'Pushes of this server, by result: delivered, or the kind of the failure.',
    labelNames: ['result'],
    registers: [],
  })
  const latency = new Histogram({
    name: 'redrive_webhook_latency_seconds',
    help: 'Seconds until the headers of the answer to a push, or until its failure.',
    buckets,
    registers: [],
  })
  return {
    count: (result, latencyMs) => {
      attempts.inc({ result })
      latency.observe(latencyMs / 1_000)
    },
    register: (registry, read) => {
      registry.registerMetric(attempts)
      registry.registerMetric(latency)
      registerGauges(registry, read)
    },
  }
}

function registerGauges(registry: Registry, read: () => DispatchFigures | undefined): void {
  const registers = [registry]
  const gauge = (name: string, help: string, of: 'queued' | 'inFlight' | 'unwritten') =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read()?.[of] ?? 0)
      },
    })
  gauge('queued_job_count', 'Webhook jobs in the memory of this server that wait for their push.', 'queued')
  gauge('redrive_webhook_pushes_in_progress', 'Pushes of this server in progress.', 'inFlight')
  gauge('redrive_webhook_outcomes_unwritten', 'Outcomes of pushes that are not stored yet.', 'unwritten')
  new Gauge({
    name: 'redrive_webhook_consumers',
    help: 'Push consumers by status. held: the circuit breaker is open.',
    labelNames: ['status'],
    registers,
    collect() {
      for (const [status, count] of Object.entries(read()?.consumersByStatus ?? {}))
        this.set({ status }, count)
    },
  })
}
