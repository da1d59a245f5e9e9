/** The records that were sent to Kafka for redriven letters, until the outcome of each redrive is known. */
import { handOver } from '../../../core/items/transitions.ts'
import type {
  AnnounceKafkaReplays,
  ForgetKafkaReplays,
  KafkaReplay,
  KafkaReplaysQuery,
  PassKafkaReplays,
  RecordKafkaReplays,
  RecordReplayResult,
  UnpassedPartition,
  UnpassedPartitionsQuery,
} from '../../contract/kafka.ts'
import { replayColumns, toKafkaReplay } from '../../shared/rows/kafka-rows.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import { executeTransition } from '../items/execute-transitions.ts'
import { findItem } from '../items/settle.ts'
import type { Transaction } from '../transaction.ts'

const putSql = `insert into kafka_replays (${replayColumns}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, null)
  on conflict (letter_id) do update set number = excluded.number, cluster = excluded.cluster, topic = excluded.topic,
    partition = excluded.partition, record_offset = excluded.record_offset,
    consumer_group = excluded.consumer_group, content_hash = excluded.content_hash, sent_at = excluded.sent_at,
    passed_at = null`

export function announceReplays(
  { database }: Transaction,
  { replays, now }: AnnounceKafkaReplays,
): undefined {
  for (const { letterId, number, cluster, topic, group, contentHash } of replays)
    database.run(putSql, letterId, number, cluster, topic, -1, -1, group, contentHash, now)
}

const recordSql = `update kafka_replays set partition = ?3, record_offset = ?4, sent_at = ?5, passed_at = null
  where letter_id = ?1 and number = ?2`

export function recordReplays(transaction: Transaction, command: RecordKafkaReplays): RecordReplayResult[] {
  const { database, queueCache } = transaction
  const { partition, replays, now } = command
  const queueRow = queueCache.getWithPartition(command.queue, partition)
  return replays.map((replay) => {
    const { letterId, number, offset } = replay
    const item = findItem(database, queueRow, partition, replay.itemId)
    if (item?.state !== 'leased' || item.letterId !== letterId || item.retryCount !== number)
      return { letterId, isRecorded: false }
    executeTransition(transaction, queueRow, item, handOver(), now)
    const updated = database.run(recordSql, letterId, number, replay.partition, offset, now)
    return { letterId, isRecorded: updated === 1 }
  })
}

const passSql = `update kafka_replays set passed_at = ?1 where letter_id in (
  select letter_id from kafka_replays where cluster = ?2 and consumer_group = ?3 and topic = ?4 and partition = ?5
    and record_offset between 0 and ?6 - 1 and passed_at is null order by record_offset limit +?7)`

export function passReplays({ database }: Transaction, command: PassKafkaReplays): { passed: number } {
  const { cluster, group, topic, partition, committed, countMax, now } = command
  return { passed: database.run(passSql, now, cluster, group, topic, partition, committed, countMax) }
}

const forgetSql = 'delete from kafka_replays where letter_id = ? and number = ?'

export function forgetReplays({ database }: Transaction, { replays }: ForgetKafkaReplays): undefined {
  for (const { letterId, number } of replays) database.run(forgetSql, letterId, number)
}

const select = `select ${replayColumns} from kafka_replays where cluster = ?1`
const byPassedSql = `${select} and passed_at is not null and passed_at <= ?2 and (passed_at, letter_id) > (?3, ?4)
  order by passed_at, letter_id limit +?5`
const bySentSql = `${select} and sent_at <= ?2 and (sent_at, letter_id) > (?3, ?4)
  order by sent_at, letter_id limit +?5`
const byLetterSql = `${select} and letter_id = ?2`
const byRecordSql = `${select} and topic = ?2 and partition = ?3 and record_offset = ?4`
const byContentSql = `${select} and content_hash = ?2 order by sent_at limit +?3`

export function listReplays(database: Database, query: KafkaReplaysQuery): KafkaReplay[] {
  const { cluster, countMax } = query
  switch (query.by) {
    case 'passed':
    case 'sent': {
      const { at, letterId } = query.after ?? { at: Number.MIN_SAFE_INTEGER, letterId: '' }
      const sql = query.by === 'passed' ? byPassedSql : bySentSql
      return database.all(sql, cluster, query.until, at, letterId, countMax).map(toKafkaReplay)
    }
    case 'letter':
      return query.letterIds.flatMap((id) => database.all(byLetterSql, cluster, id).map(toKafkaReplay))
    case 'record':
      return query.records.flatMap(({ topic, partition, offset }) =>
        database.all(byRecordSql, cluster, topic, partition, offset).map(toKafkaReplay),
      )
    case 'content':
      return query.contentHashes.flatMap((hash) =>
        database.all(byContentSql, cluster, hash, countMax).map(toKafkaReplay),
      )
  }
}

const nextUnpassedSql = `select consumer_group, topic, partition from kafka_replays
  where cluster = ?1 and passed_at is null and partition >= 0 and (consumer_group, topic, partition) > (?2, ?3, ?4)
  order by consumer_group, topic, partition limit 1`

/** Jumps from partition to partition in the index, so that the number of records does not matter. */
export function listUnpassedPartitions(
  database: Database,
  { cluster, countMax }: UnpassedPartitionsQuery,
): UnpassedPartition[] {
  const found: UnpassedPartition[] = []
  while (found.length < countMax) {
    const { group, topic, partition } = found.at(-1) ?? { group: '', topic: '', partition: -2 }
    const row = database.getArray(nextUnpassedSql, cluster, group, topic, partition)
    if (row === undefined) break
    found.push({ group: readText(row, 0), topic: readText(row, 1), partition: readNumber(row, 2) })
  }
  return found
}
