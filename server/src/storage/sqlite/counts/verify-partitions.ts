/** Compares the counts of each partition with its rows, live and archived, and repairs them. */
import { instantMax } from '../../../core/time/instant.ts'
import type { QueueDifference } from '../../contract/difference.ts'
import { comparePartition } from '../../shared/counts/compare-counts.ts'
import { countColumns, decodeCounts, decodeGauges } from '../../shared/counts/count-columns.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database, Row } from '../connection/database.ts'
import { readQueueIds } from '../queues/queue-names.ts'
import { countColumnList, sumEpochMs } from './counts.ts'

const countRows = `select partition,
    sum(state = 0 and available_at is null) as waiting, sum(state = 0 and available_at is not null) as scheduled,
    sum(state = 1) as leased, sum(state = 2) as done, sum(state = 3) as dead, sum(state = 4) as discarded
  from items where queue_id = ? group by partition`
const countArchived = `select partition, count(*) as n from archive where queue_id = ? group by partition`
const readCounted = `select ${countColumnList} from counts c where c.queue_id = ? order by c.partition`

/** Queue by queue: a store can have millions of partitions, and a queue has at most 10,000. */
export function comparePartitions(database: Database): QueueDifference[] {
  const queues = database.all('select id, name from queues order by name')
  return queues.flatMap((row) => comparePartitionsOf(database, readNumber(row, 'id'), readText(row, 'name')))
}

function comparePartitionsOf(database: Database, queueId: number, queue: string): QueueDifference[] {
  const rows = indexByPartition(database.all(countRows, queueId))
  const archived = indexByPartition(database.all(countArchived, queueId))
  return database.all(readCounted, queueId).flatMap((row) => {
    const partition = readNumber(row, 'partition')
    const archivedRow = archived.get(partition)
    const archivedRows = archivedRow === undefined ? 0 : readNumber(archivedRow, 'n')
    const differences = comparePartition(decodeCounts(row), decodeGauges(rows.get(partition)), archivedRows)
    return differences.map((difference) => ({ queue, partition, ...difference }))
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

function indexByPartition(rows: readonly Row[]): Map<number, Row> {
  return new Map(rows.map((row) => [readNumber(row, 'partition'), row]))
}
