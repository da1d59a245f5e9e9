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
import type { Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { type Decision, executeTransitions } from '../items/execute-transitions.ts'
import { lockNamedItems } from '../items/settle.ts'
import type { Transaction } from '../transaction.ts'

const put: Statement = {
  name: 'put-kafka-replays',
  text: `insert into redrive.kafka_replays (${replayColumns})
    select r.letter_id, r.number, r.cluster, r.topic, -1, -1, r.consumer_group, r.content_hash, $7::int8, null
    from unnest($1::text[], $2::int4[], $3::text[], $4::text[], $5::text[], $6::text[])
      as r(letter_id, number, cluster, topic, consumer_group, content_hash) order by 1
    on conflict (letter_id) do update set number = excluded.number, cluster = excluded.cluster, topic = excluded.topic,
      partition = excluded.partition, record_offset = excluded.record_offset,
      consumer_group = excluded.consumer_group, content_hash = excluded.content_hash, sent_at = excluded.sent_at,
      passed_at = null`,
}

export async function announceReplays(
  { connection }: Transaction,
  { replays, now }: AnnounceKafkaReplays,
): Promise<undefined> {
  if (replays.length === 0) return
  await connection.query(put, [
    encodeTexts(replays.map(({ letterId }) => letterId)),
    encodeInt4s(replays.map(({ number }) => number)),
    encodeTexts(replays.map(({ cluster }) => cluster)),
    encodeTexts(replays.map(({ topic }) => topic)),
    encodeTexts(replays.map(({ group }) => group)),
    encodeTexts(replays.map(({ contentHash }) => contentHash)),
    now,
  ])
}

const record: Statement = {
  name: 'record-kafka-replays',
  text: `update redrive.kafka_replays t
      set partition = r.partition, record_offset = r.record_offset, sent_at = $5, passed_at = null
    from unnest($1::text[], $2::int4[], $3::int4[], $4::int8[]) as r(letter_id, number, partition, record_offset)
    where t.letter_id = r.letter_id and t.number = r.number
    returning t.letter_id`,
}

export async function recordReplays(
  transaction: Transaction,
  command: RecordKafkaReplays,
): Promise<RecordReplayResult[]> {
  const { queue, partition, replays, now } = command
  const ids = replays.map(({ itemId }) => itemId)
  const locked = await lockNamedItems(transaction, [{ queue, partition, ids }], (named) => named.ids)
  const decisions: Decision[] = []
  const sent = replays.filter(({ itemId, letterId, number }) => {
    const { queueRow, items } = locked.decide(command, [itemId])
    const item = items[0]
    if (item?.letterId !== letterId || item.retryCount !== number) return false
    decisions.push({ queueRow, item, transition: handOver(), now })
    locked.delete(queueRow, item)
    return true
  })
  await executeTransitions(transaction, decisions)
  const rows = await transaction.connection.query(record, [
    encodeTexts(sent.map(({ letterId }) => letterId)),
    encodeInt4s(sent.map(({ number }) => number)),
    encodeInt4s(sent.map((replay) => replay.partition)),
    encodeInt8s(sent.map(({ offset }) => offset)),
    now,
  ])
  const recorded = new Set(rows.map((row) => readText(row, 'letter_id')))
  return replays.map(({ letterId }) => ({ letterId, isRecorded: recorded.has(letterId) }))
}

const pass: Statement = {
  name: 'pass-kafka-replays',
  text: `with passed as (
      update redrive.kafka_replays t set passed_at = $1 from (
        select r.letter_id from redrive.kafka_replays r
        where r.cluster = $2 and r.consumer_group = $3 and r.topic = $4 and r.partition = $5 and r.record_offset between 0 and $6::int8 - 1
          and r.passed_at is null order by r.record_offset limit $7) p
      where t.letter_id = p.letter_id and t.passed_at is null returning 1)
    select count(*)::int8 as n from passed`,
}

export async function passReplays(
  { connection }: Transaction,
  { cluster, group, topic, partition, committed, countMax, now }: PassKafkaReplays,
): Promise<{ passed: number }> {
  const values = [now, cluster, group, topic, partition, committed, countMax]
  const [row] = await connection.query(pass, values)
  return { passed: readNumber(row ?? {}, 'n') }
}

const forget: Statement = {
  name: 'forget-kafka-replays',
  text: `delete from redrive.kafka_replays t using unnest($1::text[], $2::int4[]) as f(letter_id, number)
    where t.letter_id = f.letter_id and t.number = f.number`,
}

export async function forgetReplays(
  { connection }: Pick<Transaction, 'connection'>,
  { replays }: ForgetKafkaReplays,
): Promise<undefined> {
  if (replays.length === 0) return
  await connection.query(forget, [
    encodeTexts(replays.map(({ letterId }) => letterId)),
    encodeInt4s(replays.map(({ number }) => number)),
  ])
}

const select = `select ${replayColumns} from redrive.kafka_replays`
const byPassed: Statement = {
  name: 'list-kafka-replays-passed',
  text: `${select} where cluster = $1 and passed_at is not null and passed_at <= $2
    and (passed_at, letter_id) > ($3, $4) order by passed_at, letter_id limit $5`,
}
const bySent: Statement = {
  name: 'list-kafka-replays-sent',
  text: `${select} where cluster = $1 and sent_at <= $2 and (sent_at, letter_id) > ($3, $4)
    order by sent_at, letter_id limit $5`,
}
const byLetter: Statement = {
  name: 'list-kafka-replays-letter',
  text: `${select} where cluster = $1 and letter_id = any ($2::text[])`,
}
const byRecord: Statement = {
  name: 'list-kafka-replays-record',
  text: `select r.* from unnest($2::text[], $3::int4[], $4::int8[]) as w(topic, partition, record_offset)
    cross join lateral (
      ${select} f where f.cluster = $1 and f.topic = w.topic and f.partition = w.partition
        and f.record_offset = w.record_offset offset 0) r`,
}
const byContent: Statement = {
  name: 'list-kafka-replays-content',
  text: `select r.* from unnest($2::text[]) as w(content_hash) cross join lateral (
      ${select} f where f.cluster = $1 and f.content_hash = w.content_hash order by f.sent_at limit $3) r`,
}

export async function listReplays(
  connections: Connections,
  query: KafkaReplaysQuery,
): Promise<KafkaReplay[]> {
  const [statement, values] = toStatement(query)
  const rows = await connections.read(statement, values)
  return rows.map(toKafkaReplay)
}

function toStatement(query: KafkaReplaysQuery): readonly [Statement, readonly unknown[]] {
  const { cluster, countMax } = query
  switch (query.by) {
    case 'passed':
    case 'sent': {
      const { at, letterId } = query.after ?? { at: Number.MIN_SAFE_INTEGER, letterId: '' }
      return [query.by === 'passed' ? byPassed : bySent, [cluster, query.until, at, letterId, countMax]]
    }
    case 'letter':
      return [byLetter, [cluster, encodeTexts(query.letterIds)]]
    case 'record': {
      const { records } = query
      return [
        byRecord,
        [
          cluster,
          encodeTexts(records.map(({ topic }) => topic)),
          encodeInt4s(records.map(({ partition }) => partition)),
          encodeInt8s(records.map(({ offset }) => offset)),
        ],
      ]
    }
    case 'content':
      return [byContent, [cluster, encodeTexts(query.contentHashes), countMax]]
  }
}

/** Jumps from partition to partition in the index, so that the number of records does not matter. */
const unpassed: Statement = {
  name: 'list-unpassed-kafka-partitions',
  text: `with recursive found as (
      (select consumer_group, topic, partition from redrive.kafka_replays
        where cluster = $1 and passed_at is null and partition >= 0 order by consumer_group, topic, partition limit 1)
      union all
      select n.* from found f cross join lateral (
        select r.consumer_group, r.topic, r.partition from redrive.kafka_replays r
        where r.cluster = $1 and r.passed_at is null and r.partition >= 0
          and (r.consumer_group, r.topic, r.partition) > (f.consumer_group, f.topic, f.partition)
        order by r.consumer_group, r.topic, r.partition limit 1) n
    )
    select * from found limit $2`,
}

export async function listUnpassedPartitions(
  connections: Connections,
  { cluster, countMax }: UnpassedPartitionsQuery,
): Promise<UnpassedPartition[]> {
  const rows = await connections.read(unpassed, [cluster, countMax])
  return rows.map((row) => ({
    group: readText(row, 'consumer_group'),
    topic: readText(row, 'topic'),
    partition: readNumber(row, 'partition'),
  }))
}
