/** How far the bridges have read the partitions of dead-letter topics. */
import type {
  AdvanceKafkaPositions,
  ClaimKafkaPartitions,
  KafkaPosition,
  KafkaPositionsQuery,
} from '../../contract/kafka.ts'
import { partitionLost, positionColumns, toKafkaPosition } from '../../shared/rows/kafka-rows.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { Transaction } from '../transaction.ts'

/**
 * A topic with another id was created again: its records start at the earliest offset. Rows are locked in the
 * order of their keys, like in `advance`.
 */
const claim: Statement = {
  name: 'claim-kafka-partitions',
  text: `insert into redrive.kafka_positions as p (cluster, consumer_group, topic, partition, topic_id, incarnation,
      next_offset, epoch, owner, updated_at, record_count)
    select $1, $2, c.topic, c.partition, c.topic_id, 0, null, 1, $6, $7, 0
    from unnest($3::text[], $4::int4[], $5::text[]) as c(topic, partition, topic_id) order by c.topic, c.partition
    on conflict (cluster, consumer_group, topic, partition) do update set
      epoch = p.epoch + 1, owner = excluded.owner, updated_at = excluded.updated_at,
      incarnation = p.incarnation + (p.topic_id <> excluded.topic_id)::int4,
      next_offset = case when p.topic_id = excluded.topic_id then p.next_offset end,
      topic_id = excluded.topic_id
    returning ${positionColumns}`,
}

export async function claimPartitions(
  { connection }: Transaction,
  { cluster, group, owner, partitions, now }: ClaimKafkaPartitions,
): Promise<KafkaPosition[]> {
  const rows = await connection.query(claim, [
    cluster,
    group,
    encodeTexts(partitions.map(({ topic }) => topic)),
    encodeInt4s(partitions.map(({ partition }) => partition)),
    encodeTexts(partitions.map(({ topicId }) => topicId)),
    owner,
    now,
  ])
  const claimed = new Map(rows.map(toKafkaPosition).map((each) => [`${each.topic}/${each.partition}`, each]))
  return partitions.map(({ topic, partition }) => claimed.get(`${topic}/${partition}`) as KafkaPosition)
}

const advance: Statement = {
  name: 'advance-kafka-positions',
  text: `update redrive.kafka_positions t
      set next_offset = a.to_offset, updated_at = $9, record_count = t.record_count + a.record_count
    from unnest($3::text[], $4::int4[], $5::int8[], $6::int8[], $7::int8[], $8::int8[])
      as a(topic, partition, epoch, from_offset, to_offset, record_count)
    where t.cluster = $1 and t.consumer_group = $2 and t.topic = a.topic and t.partition = a.partition
      and t.epoch = a.epoch and t.next_offset is not distinct from a.from_offset
    returning t.topic, t.partition`,
}

export async function advancePositions(
  { connection }: Transaction,
  command: AdvanceKafkaPositions,
): Promise<undefined> {
  const { cluster, group, now } = command
  const positions = command.positions.toSorted(compareKeys)
  const rows = await connection.query(advance, [
    cluster,
    group,
    encodeTexts(positions.map(({ topic }) => topic)),
    encodeInt4s(positions.map(({ partition }) => partition)),
    encodeInt8s(positions.map(({ epoch }) => epoch)),
    encodeInt8s(positions.map(({ from }) => from)),
    encodeInt8s(positions.map(({ to }) => to)),
    encodeInt8s(positions.map(({ recordCount }) => recordCount)),
    now,
  ])
  const advanced = new Set(rows.map((row) => `${readText(row, 'topic')}/${readNumber(row, 'partition')}`))
  const lost = positions.find(({ topic, partition }) => !advanced.has(`${topic}/${partition}`))
  if (lost !== undefined) throw partitionLost(command, lost)
}

type PartitionKey = Readonly<{ topic: string; partition: number }>

function compareKeys(left: PartitionKey, right: PartitionKey): number {
  if (left.topic !== right.topic) return left.topic < right.topic ? -1 : 1
  return left.partition - right.partition
}

const list: Statement = {
  name: 'list-kafka-positions',
  text: `select ${positionColumns} from redrive.kafka_positions where cluster = $1 and consumer_group = $2
    order by topic, partition`,
}

export async function listPositions(
  connections: Connections,
  { cluster, group }: KafkaPositionsQuery,
): Promise<KafkaPosition[]> {
  const rows = await connections.read(list, [cluster, group])
  return rows.map(toKafkaPosition)
}
