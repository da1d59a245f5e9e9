import { Gauge, type Registry } from 'prom-client'
import { otherLabel } from './labelled-totals.ts'

export type KafkaLag = Readonly<{ cluster: string; group: string; topic: string; lag: number }>

/** More series than this would burden the monitoring system. The largest lags keep their labels. */
const seriesMax = 500

/** The lag of consumer groups at the last reading. The labels are those of common exporters. */
export function registerKafkaLag(registry: Registry, listLags: () => readonly KafkaLag[]): void {
  new Gauge({
    name: 'kafka_consumer_lag',
    help: 'Records of a topic that a consumer group has not committed yet.',
    labelNames: ['group', 'topic', 'cluster'],
    registers: [registry],
    collect() {
      this.reset()
      const sorted = listLags().toSorted((a, b) => b.lag - a.lag)
      for (const { cluster, group, topic, lag } of sorted.slice(0, seriesMax))
        this.set({ group, topic, cluster }, lag)
      const others = sorted.slice(seriesMax).reduce((sum, { lag }) => sum + lag, 0)
      if (sorted.length > seriesMax)
        this.set({ group: otherLabel, topic: otherLabel, cluster: otherLabel }, others)
    },
  })
}
