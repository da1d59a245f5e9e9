/** How far the bridges have read the partitions of dead-letter topics. */
import type {
  AdvanceKafkaPositions,
  ClaimKafkaPartitions,
  KafkaPosition,
  KafkaPositionsQuery,
} from '../../contract/kafka.ts'
import { partitionLost, positionColumns, toKafkaPosition } from '../../shared/rows/kafka-rows.ts'
import type { Database } from '../connection/database.ts'
import type { Transaction } from '../transaction.ts'

/** A topic with another id was created again: its records start at the earliest offset. */
const claimSql = `insert into kafka_positions as p (cluster, consumer_group, topic, partition, topic_id, incarnation,
    next_offset, epoch, owner, updated_at, record_count)
  values (?1, ?2, ?3, ?4, ?5, 0, null, 1, ?6, ?7, 0)
  on conflict (cluster, consumer_group, topic, partition) do update set
    epoch = p.epoch + 1, owner = excluded.owner, updated_at = excluded.updated_at,
    incarnation = p.incarnation + (p.topic_id <> excluded.topic_id),
    next_offset = case when p.topic_id = excluded.topic_id then p.next_offset end,
    topic_id = excluded.topic_id
  returning ${positionColumns}`

export function claimPartitions(
  { database }: Transaction,
  { cluster, group, owner, partitions, now }: ClaimKafkaPartitions,
): KafkaPosition[] {
  return partitions.map(({ topic, partition, topicId }) => {
    const row = database.get(claimSql, cluster, group, topic, partition, topicId, owner, now)
    return toKafkaPosition(row ?? {})
  })
}

const advanceSql = `update kafka_positions
  set next_offset = ?1, updated_at = ?2, record_count = record_count + ?3
  where cluster = ?4 and consumer_group = ?5 and topic = ?6 and partition = ?7 and epoch = ?8 and next_offset is ?9`

export function advancePositions({ database }: Transaction, command: AdvanceKafkaPositions): undefined {
  const { cluster, group, positions, now } = command
  for (const each of positions) {
    const { topic, partition, epoch, from, to, recordCount } = each
    const values = [to, now, recordCount, cluster, group, topic, partition, epoch, from]
    if (database.run(advanceSql, ...values) === 0) throw partitionLost(command, each)
  }
}

const listSql = `select ${positionColumns} from kafka_positions where cluster = ? and consumer_group = ?
  order by topic, partition`

export function listPositions(database: Database, { cluster, group }: KafkaPositionsQuery): KafkaPosition[] {
  return database.all(listSql, cluster, group).map(toKafkaPosition)
}
