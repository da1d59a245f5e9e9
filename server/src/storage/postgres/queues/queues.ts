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
import type { Connections } from '../connection/connections.ts'
import type { Transaction } from '../transaction.ts'
import { lockClassForChange } from './queue-locks.ts'

export async function createQueue(transaction: Transaction, command: CreateQueue): Promise<Queue> {
  const queue = buildQueue(command.queue, command.now)
  if ((await transaction.find(queue.name)) !== undefined) {
    throw new KnownError('QUEUE_EXISTS', `queue ${queue.name} exists already`)
  }
  await checkNamespace(transaction, queue.namespace)
  const deadQueue = queue.deadQueue === null ? undefined : await transaction.find(queue.deadQueue)
  checkDeadQueue(queue.name, queue.deadQueue, deadQueue?.queue, false)
  const [row] = await transaction.connection.query(
    {
      text: `with created as (
          insert into redrive.queues (name, namespace, partitions, dead_queue, policy, created_at, updated_at)
          values ($1, $2, $3, $4, $5, $6, $7) returning *
        ), parts as (
          insert into redrive.partitions (queue_id, partition)
          select created.id, p from created, generate_series(0, $3 - 1) as p
        )
        select * from created`,
    },
    [
      queue.name,
      queue.namespace,
      queue.partitions,
      queue.deadQueue,
      encodePolicy(queue),
      queue.createdAt,
      queue.updatedAt,
    ],
  )
  transaction.setChanged(queue.name, row)
  return queue
}

export async function updateQueue(transaction: Transaction, command: UpdateQueue): Promise<Queue> {
  const queueRow = await transaction.get(command.name)
  const queue = changePolicy(queueRow.queue, command.changes, command.now)
  checkChangedTimes(command.changes, queue)
  const isDeadQueue = (await findDeadQueueUser(transaction, queue.name)) !== undefined
  const deadQueue = queue.deadQueue === null ? undefined : await transaction.find(queue.deadQueue)
  checkDeadQueue(queue.name, queue.deadQueue, deadQueue?.queue, isDeadQueue)
  if (gainsDeadQueue(queueRow.queue, queue)) {
    // Waits for captures in progress, so that their letters are seen here.
    await transaction.lockPartitions(
      Array.from({ length: queue.partitions }, (_, partition) => ({ queueRow, partition })),
    )
    checkHasNoLetters(queue, await hasGroups(transaction, queueRow.id))
  }
  if (queueRow.queue.letterClass !== queue.letterClass) await lockClassForChange(transaction, queueRow)
  const [row] = await transaction.connection.query(
    {
      text: `update redrive.queues
        set dead_queue = $2, policy = $3, updated_at = $4, version = version + 1 where id = $1 returning *`,
    },
    [queueRow.id, queue.deadQueue, encodePolicy(queue), queue.updatedAt],
  )
  transaction.setChanged(queue.name, row)
  return queue
}

/** The namespace must exist, and have space for one more queue. */
async function checkNamespace({ connection }: Transaction, name: string): Promise<void> {
  if (name === systemNamespace) return
  // The lock on queue definitions (write.ts) keeps other transactions from creating a queue now.
  const text = `select n.queues_max,
      (select count(*) from redrive.queues q where n.queues_max is not null and q.namespace = n.name) as count
    from redrive.namespaces n where n.name = $1`
  const [row] = await connection.query({ text }, [name])
  if (row === undefined) throw namespaceNotFound(name)
  const queuesMax = readNumberOrNull(row, 'queues_max')
  if (queuesMax !== null) checkQueueQuota(name, queuesMax, readNumber(row, 'count'))
}

export async function getQueue(connections: Connections, name: string): Promise<Queue | null> {
  const [row] = await connections.read(
    { name: 'get-queue', text: 'select * from redrive.queues where name = $1' },
    [name],
  )
  return row === undefined ? null : toQueue(row)
}

export async function listQueues(connections: Connections, query: QueuesQuery): Promise<Queue[]> {
  const inNamespace = query.namespace === undefined ? '' : 'and namespace = $3'
  const rows = await connections.read(
    { text: `select * from redrive.queues where name >= $1 ${inNamespace} order by name limit $2` },
    [query.from ?? '', query.countMax, ...(query.namespace === undefined ? [] : [query.namespace])],
  )
  return rows.map(toQueue)
}

/** Every letter has a group, and a group stays as long as its queue. */
async function hasGroups(transaction: Transaction, queueId: number): Promise<boolean> {
  const text = 'select from redrive.groups g where g.queue_id = $1 limit 1'
  return (await transaction.connection.query({ text }, [queueId])).length > 0
}

/** A queue whose dead queue is this one; undefined if there is none. */
export async function findDeadQueueUser(transaction: Transaction, name: string): Promise<string | undefined> {
  const [row] = await transaction.connection.query(
    { text: 'select name from redrive.queues where dead_queue = $1 limit 1' },
    [name],
  )
  return row && readText(row, 'name')
}
