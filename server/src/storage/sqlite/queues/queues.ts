import type { Instant } from '../../../core/instant.ts'
import { nextKsuids } from '../../../core/ksuid.ts'
import { changedQueue, newQueue, type Queue } from '../../../core/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { CreateQueue, QueuesQuery, UpdateQueue } from '../../contract/queues.ts'
import {
  checkChangedTimes,
  checkDeadQueue,
  checkHasNoLetters,
  gainsDeadQueue,
  partitionNotFound,
  queueNotFound,
} from '../../shared/queue-checks.ts'
import { policyText, queueOf } from '../../shared/queue-row.ts'
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
  readonly #newest = new Map<string, string>()

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

  byId(id: number): QueueRow {
    const queueRow =
      this.#byId.get(id) ?? this.#put(this.#database.get('select * from queues where id = ?', id))
    if (queueRow === undefined) throw new Error(`items of queue ${id} are left without their queue`)
    return queueRow
  }

  /** The queue, when it has that partition. */
  at(name: string, partition: number): QueueRow {
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
      this.#newest.get(key) ?? this.#stored(queueRow.id, partition),
      now,
      count,
      this.#random,
    )
    const newest = ids.at(-1)
    if (newest !== undefined) {
      this.#newest.set(key, newest)
      tally.newest(queueRow.id, partition, newest)
    }
    return ids
  }

  nextId(queueRow: QueueRow, partition: number, now: Instant, tally: Tally): string {
    return this.nextIds(queueRow, partition, now, 1, tally)[0] as string
  }

  /** In [0, 1): chance comes in from outside. */
  chance(): number {
    return this.#random()
  }

  /** What was read or counted on in memory may have been undone: read it anew. */
  invalidate(): void {
    this.#byName.clear()
    this.#byId.clear()
  }

  #stored(queueId: number, partition: number): string | undefined {
    const sql = 'select last_id from counts where queue_id = ? and partition = ?'
    return (this.#database.get(sql, queueId, partition)?.last_id as string | undefined) || undefined
  }

  #put(row: Row | undefined): QueueRow | undefined {
    if (row === undefined) return undefined
    const queue = queueOf(row)
    const queueRow: QueueRow = { id: row.id as number, queue }
    this.#byName.set(queue.name, queueRow)
    this.#byId.set(queueRow.id, queueRow)
    return queueRow
  }
}

export function createQueue(database: Database, queueCache: QueueCache, command: CreateQueue): Queue {
  const queue = newQueue(command.queue, command.now)
  if (queueCache.find(queue.name) !== undefined) {
    throw new KnownError('QUEUE_EXISTS', `queue ${queue.name} exists already`)
  }
  checkDeadQueue(queue.name, queue.deadQueue, queueCache.find(queue.deadQueue ?? '')?.queue, false)
  database.run(
    `insert into queues (name, namespace, partitions, dead_queue, policy, created_at, updated_at)
     values (?, ?, ?, ?, ?, ?, ?)`,
    queue.name,
    queue.namespace,
    queue.partitions,
    queue.deadQueue,
    policyText(queue),
    queue.createdAt,
    queue.updatedAt,
  )
  const { id } = queueCache.get(queue.name)
  for (let partition = 0; partition < queue.partitions; partition++) {
    database.run('insert into counts (queue_id, partition) values (?, ?)', id, partition)
  }
  return queue
}

export function updateQueue(database: Database, queueCache: QueueCache, command: UpdateQueue): Queue {
  const queueRow = queueCache.get(command.name)
  const queue = changedQueue(queueRow.queue, command.changes, command.now)
  checkChangedTimes(command.changes, queue)
  const isDeadQueue = namedAsDeadQueueBy(database, queue.name) !== undefined
  checkDeadQueue(queue.name, queue.deadQueue, queueCache.find(queue.deadQueue ?? '')?.queue, isDeadQueue)
  // Letters have groups, which stay as long as their queue.
  if (gainsDeadQueue(queueRow.queue, queue)) {
    checkHasNoLetters(
      queue,
      database.get('select 1 from groups where queue_id = ? limit 1', queueRow.id) !== undefined,
    )
  }
  database.run(
    'update queues set dead_queue = ?, policy = ?, updated_at = ? where id = ?',
    queue.deadQueue,
    policyText(queue),
    queue.updatedAt,
    queueRow.id,
  )
  queueRow.queue = queue
  return queue
}

export function getQueue(database: Database, name: string): Queue | null {
  const row = database.get('select * from queues where name = ?', name)
  return row === undefined ? null : queueOf(row)
}

export function listQueues(database: Database, query: QueuesQuery): Queue[] {
  const rows =
    query.namespace === undefined
      ? database.all(
          'select * from queues where name >= ? order by name limit +?',
          query.from ?? '',
          query.countMax,
        )
      : database.all(
          'select * from queues where name >= ? and namespace = ? order by name limit +?',
          query.from ?? '',
          query.namespace,
          query.countMax,
        )
  return rows.map(queueOf)
}

export function namedAsDeadQueueBy(database: Database, name: string): string | undefined {
  return database.get('select name from queues where dead_queue = ? limit 1', name)?.name as
    | string
    | undefined
}
