import { type ItemHead, toListedState } from '../../../core/items/item.ts'
import { partitionsMax } from '../../../core/items/queue.ts'
import { instantMax } from '../../../core/time/instant.ts'
import type { Counts, PartitionCounts, QueueCounts, QueueCountsQuery } from '../../contract/counts.ts'
import {
  countColumns,
  countNames,
  decodeCounts,
  decodeQueueCounts,
  printQueueCounts,
} from '../../shared/counts/count-columns.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import { LetterCountChanges } from './letter-counts.ts'

type Count = keyof Counts

/** The columns of `counts`, for a query in which the table is named `c`. */
export const countColumnList = ['partition', ...Object.values(countColumns)]
  .map((column) => `c.${column}`)
  .join(', ')

/** Sums of times are in milliseconds since this instant, so that a hundred million of them fit in 64 bits. */
export const sumEpochMs = Date.UTC(2025, 0, 1)

type Delta = {
  queueId: number
  partition: number
  counts: Map<Count, number>
  createdMs: number
  leaseMs: number
  /** Leases with a deadline. Only these are part of the mean. */
  leases: number
  lastId: string
}

/**
 * The changes that a transaction makes to the counts of items. They are summed, so that each partition is
 * written once.
 */
export class CountChanges {
  readonly letters = new LetterCountChanges()
  readonly #deltas = new Map<number, Delta>()
  readonly #dropped = new Set<number>()
  #latest: Delta | undefined

  add(queueId: number, partition: number, count: Count, by = 1): void {
    const { counts } = this.#getDelta(queueId, partition)
    counts.set(count, (counts.get(count) ?? 0) + by)
  }

  /** Counts an item in the state that it has now. */
  enter(queueId: number, item: ItemHead): void {
    this.#addItem(queueId, item, 1)
  }

  /** `enter` for `by` waiting items. Letters among them must be counted by group separately. */
  addWaiting(queueId: number, partition: number, createdAt: number, by: number): void {
    this.add(queueId, partition, 'waiting', by)
    this.#getDelta(queueId, partition).createdMs += by * sumMs(createdAt)
  }

  /** Undoes `enter`. `item` is the item as it was counted, before its change. */
  leave(queueId: number, item: ItemHead): void {
    this.#addItem(queueId, item, -1)
  }

  /** `leave` for a leased item that is no letter and of which only the times were read. */
  removeLeased(queueId: number, partition: number, createdAt: number, deadline: number): void {
    const delta = this.#getDelta(queueId, partition)
    delta.counts.set('leased', (delta.counts.get('leased') ?? 0) - 1)
    delta.createdMs -= sumMs(createdAt)
    addLease(delta, deadline, -1)
  }

  /** The last id of a partition is stored with its counts. */
  setLastId(queueId: number, partition: number, id: string): void {
    this.#getDelta(queueId, partition).lastId = id
  }

  /** Adds the changes of another write of the same commit. */
  merge(other: CountChanges): void {
    // Earlier writes of this commit may have counted in queues that the other write deleted.
    for (const queueId of other.#dropped) this.dropQueue(queueId)
    this.letters.merge(other.letters)
    for (const delta of other.#deltas.values()) {
      const mine = this.#getDelta(delta.queueId, delta.partition)
      for (const [count, by] of delta.counts) mine.counts.set(count, (mine.counts.get(count) ?? 0) + by)
      mine.createdMs += delta.createdMs
      mine.leaseMs += delta.leaseMs
      mine.leases += delta.leases
      if (delta.lastId > mine.lastId) mine.lastId = delta.lastId
    }
  }

  /** Forgets the changes of a queue that was deleted with its counts. */
  dropQueue(queueId: number): void {
    for (const [key, delta] of this.#deltas) if (delta.queueId === queueId) this.#deltas.delete(key)
    this.#latest = undefined
    this.#dropped.add(queueId)
    this.letters.dropQueue(queueId)
  }

  /** Writes the changes so far, and starts with none. */
  flush(database: Database): void {
    this.write(database)
    this.#deltas.clear()
    this.#latest = undefined
    this.letters.clear()
  }

  write(database: Database): void {
    const sets = countNames.map((name) => `${countColumns[name]} = ${countColumns[name]} + ?`).join(', ')
    for (const delta of this.#deltas.values()) {
      database.run(
        `update counts set ${sets}, created_sum_ms = created_sum_ms + ?, lease_sum_ms = lease_sum_ms + ?,
           lease_sum_count = lease_sum_count + ?, last_id = max(last_id, ?)
         where queue_id = ? and partition = ?`,
        ...countNames.map((name) => delta.counts.get(name) ?? 0),
        // Bind integers: a JavaScript number would turn the sum into a float that loses its last digits.
        BigInt(delta.createdMs),
        BigInt(delta.leaseMs),
        delta.leases,
        delta.lastId,
        delta.queueId,
        delta.partition,
      )
    }
    this.letters.write(database)
  }

  #addItem(queueId: number, item: ItemHead, by: 1 | -1): void {
    const delta = this.#getDelta(queueId, item.partition)
    const gauge = toListedState(item)
    delta.counts.set(gauge, (delta.counts.get(gauge) ?? 0) + by)
    if (gauge === 'waiting' || gauge === 'leased') delta.createdMs += by * sumMs(item.createdAt)
    if (item.state === 'leased') addLease(delta, item.lease.deadline, by)
    if (item.groupId !== null) this.letters.addLetter(queueId, item.groupId, item, by)
  }

  #getDelta(queueId: number, partition: number): Delta {
    // Consecutive items are usually of the same partition.
    if (this.#latest?.queueId === queueId && this.#latest.partition === partition) return this.#latest
    // The key is a number, because creating a text for each item would cost more than counting it.
    const key = queueId * partitionsMax + partition
    let delta = this.#deltas.get(key)
    if (delta === undefined) {
      delta = { queueId, partition, counts: new Map(), createdMs: 0, leaseMs: 0, leases: 0, lastId: '' }
      this.#deltas.set(key, delta)
    }
    this.#latest = delta
    return delta
  }
}

export function readCounts(database: Database, queue: string | undefined): PartitionCounts[] {
  const where = queue === undefined ? '' : 'where q.name = ?'
  const rows = database.all(
    `select q.name as queue, ${countColumnList},
       cast(c.created_sum_ms as text) as created_sum, cast(c.lease_sum_ms as text) as lease_sum, c.lease_sum_count
     from counts c join queues q on q.id = c.queue_id ${where} order by q.name, c.partition`,
    ...(queue === undefined ? [] : [queue]),
  )
  return rows.map((row) => {
    const counts = decodeCounts(row)
    return {
      queue: readText(row, 'queue'),
      partition: readNumber(row, 'partition'),
      ...counts,
      createdAtMean: computeMean(readText(row, 'created_sum'), counts.waiting + counts.leased),
      leaseDeadlineMean: computeMean(readText(row, 'lease_sum'), readNumber(row, 'lease_sum_count')),
    }
  })
}

export function readQueueCounts(database: Database, { queues, countMax }: QueueCountsQuery): QueueCounts[] {
  const where = queues === undefined ? '' : 'where q.name in (select value from json_each(?))'
  const partitions = `select q.name, ${countColumnList} from counts c join queues q on q.id = c.queue_id ${where}`
  const values = queues === undefined ? [] : [JSON.stringify(queues)]
  return database.all(printQueueCounts(partitions, countMax), ...values).map(decodeQueueCounts)
}

function addLease(delta: Delta, deadline: number, by: 1 | -1): void {
  if (deadline === instantMax) return
  delta.leaseMs += by * sumMs(deadline)
  delta.leases += by
}

function sumMs(instant: number): number {
  return Math.floor(instant / 1000) - sumEpochMs
}

function computeMean(sum: string, count: number): number | null {
  return count === 0 ? null : Math.round((Number(sum) / count + sumEpochMs) * 1000)
}
