import { buildQueue, changePolicy, type Queue, systemNamespace } from '../../../core/items/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { CreateQueue, QueuesQuery, UpdateQueue } from '../../contract/queues.ts'
import {
  checkChangedTimes,
  checkDeadQueue,
  checkHasNoLetters,
  gainsDeadQueue,
} from '../../shared/items/queue-checks.ts'
import { encodePolicy, toQueue } from '../../shared/items/queue-row.ts'
import { checkQueueQuota, namespaceNotFound } from '../../shared/rows/access-rows.ts'
import { readNumber, readNumberOrNull, readText } from '../../shared/rows/row-values.ts'
import type { Database } from '../connection/database.ts'
import type { QueueCache } from './queue-cache.ts'

export function createQueue(database: Database, queueCache: QueueCache, command: CreateQueue): Queue {
  const queue = buildQueue(command.queue, command.now)
  if (queueCache.find(queue.name) !== undefined) {
    throw new KnownError('QUEUE_EXISTS', `queue ${queue.name} exists already`)
  }
  checkNamespace(database, queue.namespace)
  checkDeadQueue(queue.name, queue.deadQueue, queueCache.find(queue.deadQueue ?? '')?.queue, false)
  database.run(
    `insert into queues (name, namespace, partitions, dead_queue, policy, created_at, updated_at)
     values (?, ?, ?, ?, ?, ?, ?)`,
    queue.name,
    queue.namespace,
    queue.partitions,
    queue.deadQueue,
    encodePolicy(queue),
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
  const queue = changePolicy(queueRow.queue, command.changes, command.now)
  checkChangedTimes(command.changes, queue)
  const isDeadQueue = findDeadQueueUser(database, queue.name) !== undefined
  checkDeadQueue(queue.name, queue.deadQueue, queueCache.find(queue.deadQueue ?? '')?.queue, isDeadQueue)
  // Every letter has a group, and a group stays as long as its queue.
  if (gainsDeadQueue(queueRow.queue, queue)) {
    checkHasNoLetters(
      queue,
      database.get('select 1 from groups where queue_id = ? limit 1', queueRow.id) !== undefined,
    )
  }
  database.run(
    'update queues set dead_queue = ?, policy = ?, updated_at = ? where id = ?',
    queue.deadQueue,
    encodePolicy(queue),
    queue.updatedAt,
    queueRow.id,
  )
  queueRow.queue = queue
  return queue
}

/** The namespace must exist, and have space for one more queue. */
function checkNamespace(database: Database, name: string): void {
  if (name === systemNamespace) return
  const row = database.get('select queues_max from namespaces where name = ?', name)
  if (row === undefined) throw namespaceNotFound(name)
  const queuesMax = readNumberOrNull(row, 'queues_max')
  if (queuesMax === null) return
  const counted = database.get('select count(*) as count from queues where namespace = ?', name)
  checkQueueQuota(name, queuesMax, readNumber(counted ?? {}, 'count'))
}

export function getQueue(database: Database, name: string): Queue | null {
  const row = database.get('select * from queues where name = ?', name)
  return row === undefined ? null : toQueue(row)
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
  return rows.map(toQueue)
}

/** A queue whose dead queue is this one; undefined if there is none. */
export function findDeadQueueUser(database: Database, name: string): string | undefined {
  const row = database.get('select name from queues where dead_queue = ? limit 1', name)
  return row && readText(row, 'name')
}
