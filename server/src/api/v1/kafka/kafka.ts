import { type Static, Type } from 'typebox'
import type { DeadTopicFigures, KafkaClusterFigures } from '../../../drivers/kafka/kafka.ts'
import type { ApiContext } from '../../context.ts'
import { component } from '../../http/openapi/annotations.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { formatTimeOrNull, nullable, nullableTime } from '../values/schemas.ts'

const count = (description: string) => Type.Integer({ description })

const DeadTopicView = component(
  'KafkaDeadTopic',
  Type.Object({
    topic: Type.String({ description: 'The dead-letter topic.' }),
    queue: Type.String({ description: 'Its dead queue.' }),
    partition_count: count('Number of partitions.'),
    unread_count: count('Records that are not read yet.'),
    record_count: count('Records that were read since the topic was first seen.'),
    records_per_second: Type.Number({ description: 'Records read per second, by all servers.' }),
    retention_ms: nullable(Type.Integer(), 'How long Kafka keeps records; null: forever, or unknown.'),
    is_losing_soon: Type.Boolean({
      description: 'Unread records have reached most of the retention, so Kafka removes them soon.',
    }),
    partitions: Type.Array(
      Type.Object({
        partition: count('The partition.'),
        earliest: count('The earliest offset that Kafka has.'),
        end: count('The offset of the next record that is written.'),
        position: nullable(Type.Integer(), 'The offset of the next record to read; null: none was read.'),
      }),
      { description: 'The progress by partition.' },
    ),
  }),
)

const KafkaClusterView = component(
  'KafkaCluster',
  Type.Object({
    name: Type.String({ description: 'Name of the cluster.' }),
    brokers: Type.Array(Type.String(), { description: 'The configured brokers.' }),
    consumer_group: Type.String({ description: 'The consumer group of the bridge.' }),
    is_up: Type.Boolean({ description: 'Whether this server reads from the cluster.' }),
    error: nullable(Type.String(), 'Why the cluster cannot be used; null: it can.'),
    read_at: nullableTime('When the figures were read; null: never.'),
    topics: Type.Array(DeadTopicView, { description: 'The dead-letter topics.' }),
    groups: Type.Array(
      Type.Object({
        consumer_group: Type.String({ description: 'A consumer group.' }),
        topic: Type.String({ description: 'A topic that it reads.' }),
        lag: count('Records that it has not committed yet.'),
      }),
      { description: 'The lag of consumer groups, the largest first.' },
    ),
    omitted_count: count('Groups and topics that are left out, because there are too many.'),
  }),
)

export const kafkaRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/kafka',
    operationId: 'getKafka',
    permission: 'kafka.read',
    summary:
      'Shows the Kafka clusters: dead-letter topics, the progress of reading them, and the lag of groups.',
    tag: 'kafka',
    dialect: v1,
    schema: {
      response: {
        200: Type.Object({
          clusters: Type.Array(KafkaClusterView, { description: 'The clusters of the settings.' }),
        }),
      },
    },
    handler: async (_request, _reply, { kafka }) => viewKafka(kafka),
  }),
]

function viewKafka(kafka: ApiContext['kafka']) {
  const health = new Map(kafka.health().map((each) => [each.cluster, each]))
  const figures = new Map(kafka.listFigures().map((each) => [each.cluster, each]))
  return {
    clusters: kafka.clusters.map(({ name, brokers, group }) => ({
      name,
      brokers: [...brokers],
      consumer_group: group,
      is_up: health.get(name)?.isUp ?? false,
      error: health.get(name)?.reason ?? null,
      ...viewFigures(figures.get(name)),
    })),
  }
}

function viewFigures(figures: KafkaClusterFigures | undefined) {
  return {
    read_at: formatTimeOrNull(figures?.readAt),
    topics: (figures?.topics ?? []).map(viewTopic),
    groups: (figures?.groups ?? []).map(({ group, topic, lag }) => ({ consumer_group: group, topic, lag })),
    omitted_count: figures?.omittedCount ?? 0,
  }
}

function viewTopic(topic: DeadTopicFigures): Static<typeof DeadTopicView> {
  return {
    topic: topic.topic,
    queue: topic.queue,
    partition_count: topic.partitionCount,
    unread_count: topic.unreadCount,
    record_count: topic.recordCount,
    records_per_second: Math.round(topic.recordsPerSecond * 10) / 10,
    retention_ms: topic.retentionMs,
    is_losing_soon: topic.isLosingSoon,
    partitions: topic.partitions.map((each) => ({ ...each })),
  }
}
