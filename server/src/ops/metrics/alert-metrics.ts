import { Gauge, type Registry } from 'prom-client'
import type { AlertCount } from '../../storage/contract/alerts.ts'

/** The number of rules is bounded, and so is the number of labels. The counts are the same on all servers. */
export function registerAlerts(registry: Registry, countAlerts: () => Promise<readonly AlertCount[]>): void {
  new Gauge({
    name: 'redrive_alerts',
    help: 'Alerts that are pending or firing, by rule, state and severity.',
    labelNames: ['rule', 'state', 'severity'],
    registers: [registry],
    async collect() {
      this.reset()
      // Without the store there are no counts, and all other metrics must still be answered.
      const counts = await countAlerts().catch(() => [])
      for (const { rule, state, severity, count } of counts) this.set({ rule, state, severity }, count)
    },
  })
}
