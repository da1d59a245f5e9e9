import { Gauge, type Registry } from 'prom-client'
import { otherLabel } from './labelled-totals.ts'

export type KafkaLag = Readonly<{ cluster: string; group: string; topic: string; lag: number }>

/** More series than this would burden the monitoring system. The largest lags keep their labels. */
const seriesMax = 500

export type KafkaTopic = Readonly<{
  cluster: string
  topic: string
  unreadCount: number
  isLosingSoon: boolean
}>

export type KafkaFigures = Readonly<{
  listLags(): readonly KafkaLag[]
  /** Dead-letter topics. */
  listTopics(): readonly KafkaTopic[]
  listClusters(): readonly Readonly<{ cluster: string; isUp: boolean }>[]
}>

export function registerKafka(registry: Registry, figures: KafkaFigures): void {
  registerLag(registry, figures.listLags)
  registerTopics(registry, figures.listTopics)
  new Gauge({
    name: 'redrive_kafka_up',
    help: '1 while a Kafka cluster can be used, otherwise 0.',
    labelNames: ['cluster'],
    registers: [registry],
    collect() {
      for (const { cluster, isUp } of figures.listClusters()) this.set({ cluster }, isUp ? 1 : 0)
    },
  })
}

function registerTopics(registry: Registry, listTopics: () => readonly KafkaTopic[]): void {
  const register = (name: string, help: string, read: (topic: KafkaTopic) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['cluster', 'topic'],
      registers: [registry],
      collect() {
        this.reset()
        const sorted = listTopics().toSorted((a, b) => b.unreadCount - a.unreadCount)
        for (const [at, topic] of sorted.entries()) {
          const isOwn = at < seriesMax
          const labels = isOwn
            ? { cluster: topic.cluster, topic: topic.topic }
            : { cluster: otherLabel, topic: otherLabel }
          this.inc(labels, read(topic))
        }
      },
    })
  register(
    'redrive_kafka_unread_records',
    'Records of a dead-letter topic that are not read yet.',
    ({ unreadCount }) => unreadCount,
  )
  register(
    'redrive_kafka_losing_soon',
    '1 if Kafka soon removes unread records of a dead-letter topic, otherwise 0.',
    ({ isLosingSoon }) => (isLosingSoon ? 1 : 0),
  )
}

/** The lag of consumer groups at the last reading. The labels are those of common exporters. */
function registerLag(registry: Registry, listLags: () => readonly KafkaLag[]): void {
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
