import { createKsuids } from '../../../core/ids/ksuid.ts'
import type { Queue } from '../../../core/items/queue.ts'
import type { Instant } from '../../../core/time/instant.ts'
import { createPartitionNotFoundError, createQueueNotFoundError } from '../../shared/items/queue-checks.ts'
import { toQueue } from '../../shared/items/queue-row.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Database, Row } from '../connection/database.ts'
import type { CountChanges } from '../counts/counts.ts'

/** A queue with its row id. */
export type QueueRow = { readonly id: number; queue: Queue }

/**
 * The queues that the writer has read. They can be kept in memory because a SQLite store has only one writer.
 * After a rollback, call `invalidate`.
 */
export class QueueCache {
  readonly #database: Database
  readonly #random: () => number
  readonly #byName = new Map<string, QueueRow>()
  readonly #byId = new Map<number, QueueRow>()
  /** Stays after a rollback: ids that were created and not stored only leave a gap. */
  readonly #lastIds = new Map<string, string>()

  constructor(database: Database, random: () => number) {
    this.#database = database
    this.#random = random
  }

  get(name: string): QueueRow {
    const queueRow = this.find(name)
    if (queueRow === undefined) throw createQueueNotFoundError(name)
    return queueRow
  }

  find(name: string): QueueRow | undefined {
    const queueRow = this.#byName.get(name)
    if (queueRow !== undefined) return queueRow
    return this.#put(this.#database.get('select * from queues where name = ?', name))
  }

  getById(id: number): QueueRow {
    const queueRow =
      this.#byId.get(id) ?? this.#put(this.#database.get('select * from queues where id = ?', id))
    if (queueRow === undefined)
      throw new Error(`there are items of queue ${id}, but the queue does not exist`)
    return queueRow
  }

  /** The queue. Refuses a partition that it does not have. */
  getWithPartition(name: string, partition: number): QueueRow {
    const queueRow = this.get(name)
    if (!Number.isInteger(partition) || partition < 0 || partition >= queueRow.queue.partitions) {
      throw createPartitionNotFoundError(name, partition, queueRow.queue.partitions)
    }
    return queueRow
  }

  /**
   * New ids for a partition. They are greater than all earlier ids of the partition, even after a crash and
   * with a clock that was set back.
   */
  allocateIds(
    queueRow: QueueRow,
    partition: number,
    now: Instant,
    count: number,
    countChanges: CountChanges,
  ): string[] {
    const key = `${queueRow.id}/${partition}`
    const ids = createKsuids(
      this.#lastIds.get(key) ?? this.#readLastId(queueRow.id, partition),
      now,
      count,
      this.#random,
    )
    const newest = ids.at(-1)
    if (newest !== undefined) {
      this.#lastIds.set(key, newest)
      countChanges.setLastId(queueRow.id, partition, newest)
    }
    return ids
  }

  allocateId(queueRow: QueueRow, partition: number, now: Instant, countChanges: CountChanges): string {
    return this.allocateIds(queueRow, partition, now, 1, countChanges)[0] as string
  }

  /** A number in [0, 1) from the injected source of randomness. */
  random(): number {
    return this.#random()
  }

  /** Forgets all queues. Call it after a rollback, which may have undone a change of a queue. */
  invalidate(): void {
    this.#byName.clear()
    this.#byId.clear()
  }

  #readLastId(queueId: number, partition: number): string | undefined {
    const sql = 'select last_id from counts where queue_id = ? and partition = ?'
    const row = this.#database.get(sql, queueId, partition)
    // Empty: the partition never had an item.
    return row === undefined ? undefined : readText(row, 'last_id') || undefined
  }

  #put(row: Row | undefined): QueueRow | undefined {
    if (row === undefined) return undefined
    const queue = toQueue(row)
    const queueRow: QueueRow = { id: readNumber(row, 'id'), queue }
    this.#byName.set(queue.name, queueRow)
    this.#byId.set(queueRow.id, queueRow)
    return queueRow
  }
}
