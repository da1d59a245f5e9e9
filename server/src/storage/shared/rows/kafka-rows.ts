/** Rows of the Kafka driver, in the form that both stores read them, and the errors of its commands. */
import { KnownError } from '../../../errors.ts'
import type { AdvanceKafkaPositions, KafkaAdvance, KafkaPosition, KafkaReplay } from '../../contract/kafka.ts'
import { type DatabaseRow, readNumber, readNumberOrNull, readText } from './row-values.ts'

export const positionColumns =
  'topic, partition, topic_id, incarnation, next_offset, epoch, owner, updated_at, record_count'

/** From a row with `positionColumns` by name. */
export function toKafkaPosition(row: DatabaseRow): KafkaPosition {
  return {
    topic: readText(row, 'topic'),
    partition: readNumber(row, 'partition'),
    topicId: readText(row, 'topic_id'),
    incarnation: readNumber(row, 'incarnation'),
    nextOffset: readNumberOrNull(row, 'next_offset'),
    epoch: readNumber(row, 'epoch'),
    owner: readText(row, 'owner'),
    updatedAt: readNumber(row, 'updated_at'),
    recordCount: readNumber(row, 'record_count'),
  }
}

export const replayColumns =
  'letter_id, number, cluster, topic, partition, record_offset, consumer_group, content_hash, sent_at, passed_at'

/** From a row with `replayColumns` by name. */
export function toKafkaReplay(row: DatabaseRow): KafkaReplay {
  return {
    letterId: readText(row, 'letter_id'),
    number: readNumber(row, 'number'),
    cluster: readText(row, 'cluster'),
    topic: readText(row, 'topic'),
    partition: readNumber(row, 'partition'),
    offset: readNumber(row, 'record_offset'),
    group: readText(row, 'consumer_group'),
    contentHash: readText(row, 'content_hash'),
    sentAt: readNumber(row, 'sent_at'),
    passedAt: readNumberOrNull(row, 'passed_at'),
  }
}

export function partitionLost(
  { cluster, group }: Pick<AdvanceKafkaPositions, 'cluster' | 'group'>,
  { topic, partition, epoch, from }: KafkaAdvance,
): KnownError {
  const claim = `claim ${epoch} at offset ${from ?? 'earliest'}`
  return new KnownError(
    'KAFKA_PARTITION_LOST',
    `${claim} of ${topic} partition ${partition} in cluster ${cluster}, group ${group}, is no longer valid`,
  )
}
