/** Compares the counts of each partition with its rows, live and archived. */
import type { QueueDifference } from '../../contract/difference.ts'
import { comparePartition, type PartitionDifference } from '../../shared/counts/compare-counts.ts'
import { decodeGauges } from '../../shared/counts/count-columns.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Connection, Row } from '../connection/connection.ts'
import { encodeInt4s } from '../connection/encode-arrays.ts'
import { CountChanges, countedPartitions, decodePartition } from './counts.ts'

/** `correction`: the numbers to add to the counts. */
export type PartitionDrift = Readonly<{ differences: QueueDifference[]; correction: CountChanges }>

const countRows = `select queue_id, partition,
    count(*) filter (where state = 0) as waiting, count(*) filter (where state = 1) as scheduled,
    count(*) filter (where state = 2) as leased, count(*) filter (where state = 3) as done,
    count(*) filter (where state = 4) as dead, count(*) filter (where state = 5) as discarded,
    coalesce(sum(created_at / 1000) filter (where state in (0, 2)), 0) as created_sum,
    coalesce(sum(lease_deadline / 1000) filter (where state = 2), 0) as lease_sum
  from redrive.items where queue_id = any ($1::int4[]) group by queue_id, partition`
const countArchived = `select queue_id, partition, count(*) as n from redrive.archive
  where queue_id = any ($1::int4[]) group by queue_id, partition`
const readCounted = `${countedPartitions} where p.queue_id = any ($1::int4[])
  group by q.name, p.queue_id, p.partition order by q.name, p.partition`

/** A store can have millions of partitions, so queues are compared in groups with this number of them. */
const partitionsAtOnce = 10_000

export async function comparePartitions(connection: Connection): Promise<PartitionDrift> {
  const drift: PartitionDrift = { differences: [], correction: new CountChanges() }
  const queues = await connection.query({ text: 'select id, partitions from redrive.queues order by name' })
  for (let at = 0; at < queues.length; ) {
    const ids: number[] = []
    for (let partitions = 0; at < queues.length && partitions < partitionsAtOnce; at++) {
      const row = queues[at] as Row
      ids.push(readNumber(row, 'id'))
      partitions += readNumber(row, 'partitions')
    }
    await compareQueues(connection, ids, drift)
  }
  return drift
}

async function compareQueues(
  connection: Connection,
  queueIds: readonly number[],
  { differences, correction }: PartitionDrift,
): Promise<void> {
  const ids = [encodeInt4s(queueIds)]
  const rows = indexByPartition(await connection.query({ text: countRows, isLong: true }, ids))
  const archived = indexByPartition(await connection.query({ text: countArchived, isLong: true }, ids))
  for (const row of await connection.query({ text: readCounted }, ids)) {
    const key = toPartitionKey(row)
    const queueId = readNumber(row, 'queue_id')
    const { queue, partition, createdMs, leaseMs, ...counts } = decodePartition(row)
    const actual = rows.get(key)
    const archivedRow = archived.get(key)
    const archivedRows = archivedRow === undefined ? 0 : readNumber(archivedRow, 'n')
    for (const difference of comparePartition(counts, decodeGauges(actual), archivedRows)) {
      differences.push({ queue, partition, ...difference })
      correct(correction, queueId, partition, difference)
    }
    const missingCreatedMs = readSum(actual, 'created_sum') - createdMs
    const missingLeaseMs = readSum(actual, 'lease_sum') - leaseMs
    if (missingCreatedMs !== 0n || missingLeaseMs !== 0n)
      correction.addSums(queueId, partition, missingCreatedMs, missingLeaseMs)
  }
}

/** Sets the gauges to the numbers of rows, and `accepted` to the sum that conservation needs. */
function correct(
  correction: CountChanges,
  queueId: number,
  partition: number,
  { count, counted, actual }: PartitionDifference,
): void {
  const missing = actual - counted
  correction.add(queueId, partition, 'accepted', missing)
  if (count !== 'conservation') correction.add(queueId, partition, count, missing)
}

/** A partition without rows has no sums. */
function readSum(row: Row | undefined, column: 'created_sum' | 'lease_sum'): bigint {
  return row === undefined ? 0n : BigInt(readText(row, column))
}

function indexByPartition(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [toPartitionKey(row), row]))
}

function toPartitionKey(row: Row): string {
  return `${readNumber(row, 'queue_id')}/${readNumber(row, 'partition')}`
}
