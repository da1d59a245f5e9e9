/** Compares the counts of each partition with its rows, live and archived, and repairs them. */
import { instantMax } from '../../../core/instant.ts'
import type { QueueDifference } from '../../contract/difference.ts'
import { comparePartition } from '../../shared/compare-counts.ts'
import { countColumns, decodeCounts, decodeGauges } from '../../shared/count-columns.ts'
import { readNumber, readText } from '../../shared/row-values.ts'
import type { Database, Row } from '../connection/database.ts'
import { readQueueIds } from '../queues/queue-names.ts'
import { countColumnList, sumEpochMs } from './counts.ts'

const countRows = `select queue_id, partition,
    sum(state = 0 and available_at is null) as waiting, sum(state = 0 and available_at is not null) as scheduled,
    sum(state = 1) as leased, sum(state = 2) as done, sum(state = 3) as dead, sum(state = 4) as discarded
  from items group by queue_id, partition`
const countArchived = 'select queue_id, partition, count(*) as n from archive group by queue_id, partition'
const readCounted = `select q.name as queue, c.queue_id, ${countColumnList}
  from counts c join queues q on q.id = c.queue_id order by q.name, c.partition`

export function comparePartitions(database: Database): QueueDifference[] {
  const rows = indexByPartition(database.all(countRows))
  const archived = indexByPartition(database.all(countArchived))
  return database.all(readCounted).flatMap((row) => {
    const key = toPartitionKey(row)
    const archivedRow = archived.get(key)
    const archivedRows = archivedRow === undefined ? 0 : readNumber(archivedRow, 'n')
    const differences = comparePartition(decodeCounts(row), decodeGauges(rows.get(key)), archivedRows)
    const partition = { queue: readText(row, 'queue'), partition: readNumber(row, 'partition') }
    return differences.map((difference) => ({ ...partition, ...difference }))
  })
}

/**
 * Sets the gauges of these partitions to their numbers of rows, and `accepted` to the sum that conservation
 * needs.
 */
export function repairPartitions(database: Database, differences: readonly QueueDifference[]): void {
  const partitions = new Map(differences.map((found) => [`${found.queue}/${found.partition}`, found]))
  for (const { queue, partition } of partitions.values()) {
    for (const queueId of readQueueIds(database, [queue])) repairPartition(database, queueId, partition)
  }
}

function repairPartition(database: Database, id: number, partition: number): void {
  const tail = `from items where queue_id = ${id} and partition = ${partition}`
  const leases = `${tail} and state = 1 and lease_deadline < ${instantMax}`
  const parts = Object.values(countColumns).filter((column) => column !== 'accepted')
  database.exec(`
    update counts set
      waiting = (select count(*) ${tail} and state = 0 and available_at is null),
      scheduled = (select count(*) ${tail} and state = 0 and available_at is not null),
      leased = (select count(*) ${tail} and state = 1),
      done = (select count(*) ${tail} and state = 2),
      dead = (select count(*) ${tail} and state = 3),
      discarded = (select count(*) ${tail} and state = 4),
      archived = (select count(*) from archive where queue_id = ${id} and partition = ${partition}),
      created_sum_ms = (select coalesce(sum(created_at / 1000 - ${sumEpochMs}), 0) ${tail}
        and (state = 1 or (state = 0 and available_at is null))),
      lease_sum_ms = (select coalesce(sum(lease_deadline / 1000 - ${sumEpochMs}), 0) ${leases}),
      lease_sum_count = (select count(*) ${leases})
    where queue_id = ${id} and partition = ${partition};
    update counts set accepted = ${parts.join(' + ')} where queue_id = ${id} and partition = ${partition};`)
}

function indexByPartition(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [toPartitionKey(row), row]))
}

function toPartitionKey(row: Row): string {
  return `${readNumber(row, 'queue_id')}/${readNumber(row, 'partition')}`
}
