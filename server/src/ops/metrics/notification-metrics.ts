/** Metrics of the notifications about alerts. Their labels are kinds and outcomes, so they are bounded. */
import { Counter, Histogram, type Registry } from 'prom-client'

export type NotificationMetrics = Readonly<{
  /** `kind`: of the channel. `outcome`: `delivered`, `retried` or `failed`. */
  count(kind: string, outcome: string, latencyMs: number): void
  register(registry: Registry): void
}>

/** In seconds. */
const buckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export function createNotificationMetrics(): NotificationMetrics {
  const attempts = new Counter({
    name: 'redrive_alert_notifications_total',
    help: 'Attempts of this server to send notifications: delivered, retried, or failed (given up).',
    labelNames: ['kind', 'outcome'],
    registers: [],
  })
  const latency = new Histogram({
    name: 'redrive_alert_notification_latency_seconds',
    help: 'Seconds of an attempt to send a notification.',
    buckets,
    registers: [],
  })
  return {
    count: (kind, outcome, latencyMs) => {
      attempts.inc({ kind, outcome })
      latency.observe(latencyMs / 1_000)
    },
    register: (registry) => {
      registry.registerMetric(attempts)
      registry.registerMetric(latency)
    },
  }
}
