import type { Instant } from '../../../core/instant.ts'
import { nextKsuids } from '../../../core/ksuid.ts'
import type { Queue } from '../../../core/queue.ts'
import { partitionNotFound, queueNotFound } from '../../shared/queue-checks.ts'
import { toQueue } from '../../shared/queue-row.ts'
import type { Database, Row } from '../connection/database.ts'
import type { Tally } from '../counts/counts.ts'

/** A queue with its row id. */
export type QueueRow = { readonly id: number; queue: Queue }

/**
 * The queues as the one writer of this file sees them. It may keep them in memory because a SQLite
 * store has a single server; whoever rolls back must call `forget`.
 */
export class QueueCache {
  readonly #database: Database
  readonly #random: () => number
  readonly #byName = new Map<string, QueueRow>()
  readonly #byId = new Map<number, QueueRow>()
  /** Not forgotten when something is undone: ids that were given and not kept are only a gap. */
  readonly #lastIds = new Map<string, string>()

  constructor(database: Database, random: () => number) {
    this.#database = database
    this.#random = random
  }

  get(name: string): QueueRow {
    const queueRow = this.find(name)
    if (queueRow === undefined) throw queueNotFound(name)
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
    if (queueRow === undefined) throw new Error(`items of queue ${id} are left without their queue`)
    return queueRow
  }

  /** The queue, when it has that partition. */
  getWithPartition(name: string, partition: number): QueueRow {
    const queueRow = this.get(name)
    if (!Number.isInteger(partition) || partition < 0 || partition >= queueRow.queue.partitions) {
      throw partitionNotFound(name, partition, queueRow.queue.partitions)
    }
    return queueRow
  }

  /** Above every id that was ever given in the partition, also after a crash with the clock set back. */
  nextIds(queueRow: QueueRow, partition: number, now: Instant, count: number, tally: Tally): string[] {
    const key = `${queueRow.id}/${partition}`
    const ids = nextKsuids(
      this.#lastIds.get(key) ?? this.#readLastId(queueRow.id, partition),
      now,
      count,
      this.#random,
    )
    const newest = ids.at(-1)
    if (newest !== undefined) {
      this.#lastIds.set(key, newest)
      tally.newest(queueRow.id, partition, newest)
    }
    return ids
  }

  nextId(queueRow: QueueRow, partition: number, now: Instant, tally: Tally): string {
    return this.nextIds(queueRow, partition, now, 1, tally)[0] as string
  }

  /** In [0, 1): chance comes in from outside. */
  random(): number {
    return this.#random()
  }

  /** What was read or counted on in memory may have been undone: read it anew. */
  invalidate(): void {
    this.#byName.clear()
    this.#byId.clear()
  }

  #readLastId(queueId: number, partition: number): string | undefined {
    const sql = 'select last_id from counts where queue_id = ? and partition = ?'
    return (this.#database.get(sql, queueId, partition)?.last_id as string | undefined) || undefined
  }

  #put(row: Row | undefined): QueueRow | undefined {
    if (row === undefined) return undefined
    const queue = toQueue(row)
    const queueRow: QueueRow = { id: row.id as number, queue }
    this.#byName.set(queue.name, queueRow)
    this.#byId.set(queueRow.id, queueRow)
    return queueRow
  }
}
