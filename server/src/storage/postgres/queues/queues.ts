import { changedQueue, newQueue, type Queue } from '../../../core/queue.ts'
import { KnownError } from '../../../errors.ts'
import type { CreateQueue, DeleteQueue, QueuesQuery, UpdateQueue } from '../../contract/queues.ts'
import { queueEntries, removalDetails } from '../../shared/audit-entries.ts'
import {
  checkChangedTimes,
  checkDeadQueue,
  checkHasNoLetters,
  gainsDeadQueue,
  partitionNotFound,
  queueInUse,
  queueNotFound,
} from '../../shared/queue-checks.ts'
import { policyText, queueOf } from '../../shared/queue-row.ts'
import { insertEntries } from '../audit/audit.ts'
import { allOf } from '../connection/await-all.ts'
import type { Connection, Connections, Row } from '../connection/connections.ts'
import { Stale } from '../connection/errors.ts'
import { dropSums } from '../counts/letter-count-rollups.ts'
import { checkOpen, lettersByState } from '../items/remove.ts'
import { stateCodes } from '../items/rows.ts'
import { endWhatIsGone, goneColumns } from '../letters/redrive-ends.ts'
import type { Transaction } from '../transaction.ts'

/** `version`: what is said here holds while the row has this version. */
export type QueueRow = Readonly<{ id: number; version: number; isLetterStore: boolean; queue: Queue }>

const redrivenMs = 2_000

/**
 * What this server remembers of queues, so that most writes need not ask. Others may change a queue at
 * any time: every statement that builds on this also checks the version, and does nothing if it differs.
 */
export class QueueCache {
  readonly #byName = new Map<string, QueueRow>()
  readonly #lastIds = new Map<string, string>()
  readonly #redrivenUntil = new Map<number, number>()

  async get(connections: Connections, name: string): Promise<QueueRow> {
    const queueRow = this.#byName.get(name)
    if (queueRow !== undefined) return queueRow
    const [row] = await connections.read(
      { name: 'get-queue', text: 'select * from redrive.queues where name = $1' },
      [name],
    )
    if (row === undefined) throw queueNotFound(name)
    return this.put(row)
  }

  /** The queue of each command, when it has the partition that the command names. */
  async ofEach<C extends Readonly<{ queue: string; partition: number }>>(
    connections: Connections,
    commands: readonly C[],
  ): Promise<Readonly<{ command: C; queueRow: QueueRow }>[]> {
    const found: Readonly<{ command: C; queueRow: QueueRow }>[] = []
    for (const command of commands) {
      const queueRow = this.#byName.get(command.queue) ?? (await this.get(connections, command.queue))
      checkPartition(queueRow.queue, command.partition)
      found.push({ command, queueRow })
    }
    return found
  }

  put(row: Row): QueueRow {
    const before = this.#byName.get(row.name as string)
    if (before !== undefined && before.id === row.id && before.version === row.version) return before
    const queueRow = toQueueRow(row)
    this.#byName.set(queueRow.queue.name, queueRow)
    return queueRow
  }

  invalidate(name: string): void {
    this.#byName.delete(name)
  }

  /** Redrives were completed in it: for a moment it is not expected that the next items are ordinary ones. */
  noteRedrives(queueId: number): void {
    this.#redrivenUntil.set(queueId, performance.now() + redrivenMs)
  }

  hasRedrives(queueId: number): boolean {
    const until = this.#redrivenUntil.get(queueId)
    if (until === undefined) return false
    if (until > performance.now()) return true
    this.#redrivenUntil.delete(queueId)
    return false
  }

  /** The newest id that this server knows of; others may have made newer ones. */
  lastId(queueRow: QueueRow, partition: number): string | undefined {
    return this.#lastIds.get(`${queueRow.id}/${partition}`)
  }

  setLastId(queueId: number, partition: number, id: string): void {
    const key = `${queueId}/${partition}`
    const before = this.#lastIds.get(key)
    if (before === undefined || before < id) this.#lastIds.set(key, id)
  }
}

export function toQueueRow(row: Row): QueueRow {
  return {
    id: row.id as number,
    version: row.version as number,
    isLetterStore: row.is_sourced as boolean,
    queue: queueOf(row),
  }
}

export function checkPartition(queue: Queue, partition: number): void {
  if (!Number.isInteger(partition) || partition < 0 || partition >= queue.partitions) {
    throw partitionNotFound(queue.name, partition, queue.partitions)
  }
}

const changeWaitMs = 2_000

/**
 * One at a time in the whole cluster: the rules about dead queues look at several queues at once. `isHurried`: given up, with
 * nothing done, before those who asked are told that nobody knows. A delete of millions may be before it; whoever
 * repeats meanwhile would take one connection after the other.
 */
export async function lockQueueDefinitions(connection: Connection, isHurried: boolean): Promise<void> {
  if (isHurried) await connection.query({ text: `set local lock_timeout = ${changeWaitMs}` })
  await connection.query({ text: `select pg_advisory_xact_lock(hashtext('redrive queue definitions'))` })
}

/**
 * The queue with the class that it keeps until this transaction ends. Whoever changes the class waits for those who go
 * by it, and those who come later wait for the change: a lock on its row would let them in before it for as long as
 * they come one after the other.
 */
export async function holdClass(transaction: Transaction, { id, queue }: QueueRow): Promise<QueueRow> {
  const { connection } = transaction
  // Two statements: the second sees what was committed while the first waited.
  const [, [row]] = await allOf([
    connection.query({ text: `select pg_advisory_xact_lock_shared(${classLock}, $1)` }, [id]),
    connection.query({ text: 'select * from redrive.queues where id = $1' }, [id]),
  ])
  if (row === undefined) throw new Stale(`queue ${queue.name}`)
  return toQueueRow(row)
}

async function waitToChangeClass(transaction: Transaction, { id }: QueueRow): Promise<void> {
  await transaction.connection.query({ text: `select pg_advisory_xact_lock(${classLock}, $1)` }, [id])
}

/** The archive procedure has the same one. */
const classLock = `hashtext('redrive letter class')`

export async function createQueue(transaction: Transaction, command: CreateQueue): Promise<Queue> {
  const queue = newQueue(command.queue, command.now)
  if ((await transaction.find(queue.name)) !== undefined) {
    throw new KnownError('QUEUE_EXISTS', `queue ${queue.name} exists already`)
  }
  const deadQueue = queue.deadQueue === null ? undefined : await transaction.find(queue.deadQueue)
  checkDeadQueue(queue.name, queue.deadQueue, deadQueue?.queue, false)
  const [row] = await transaction.connection.query(
    {
      text: `with made as (
          insert into redrive.queues (name, namespace, partitions, dead_queue, policy, created_at, updated_at)
          values ($1, $2, $3, $4, $5, $6, $7) returning *
        ), parts as (
          insert into redrive.partitions (queue_id, partition)
          select made.id, p from made, generate_series(0, $3 - 1) as p
        )
        select * from made`,
    },
    [
      queue.name,
      queue.namespace,
      queue.partitions,
      queue.deadQueue,
      policyText(queue),
      queue.createdAt,
      queue.updatedAt,
    ],
  )
  transaction.changed(queue.name, row)
  return queue
}

export async function updateQueue(transaction: Transaction, command: UpdateQueue): Promise<Queue> {
  const queueRow = await transaction.get(command.name)
  const queue = changedQueue(queueRow.queue, command.changes, command.now)
  checkChangedTimes(command.changes, queue)
  const isDeadQueue = (await namedAsDeadQueueBy(transaction, queue.name)) !== undefined
  const deadQueue = queue.deadQueue === null ? undefined : await transaction.find(queue.deadQueue)
  checkDeadQueue(queue.name, queue.deadQueue, deadQueue?.queue, isDeadQueue)
  if (gainsDeadQueue(queueRow.queue, queue)) {
    // A capture that is under way is waited for.
    await transaction.lockPartitions(
      Array.from({ length: queue.partitions }, (_, partition) => ({ queueRow, partition })),
    )
    checkHasNoLetters(queue, await hasGroups(transaction, queueRow.id))
  }
  if (queueRow.queue.letterClass !== queue.letterClass) await waitToChangeClass(transaction, queueRow)
  const [row] = await transaction.connection.query(
    {
      text: `update redrive.queues
        set dead_queue = $2, policy = $3, updated_at = $4, version = version + 1 where id = $1 returning *`,
    },
    [queueRow.id, queue.deadQueue, policyText(queue), queue.updatedAt],
  )
  transaction.changed(queue.name, row)
  return queue
}

export async function deleteQueue(
  transaction: Transaction,
  command: DeleteQueue,
): Promise<{ removed: number }> {
  const queueRow = await transaction.get(command.name)
  const { id } = queueRow
  const user = await namedAsDeadQueueBy(transaction, command.name)
  if (user !== undefined) throw queueInUse(command.name, user)
  const run = async (text: string) => (await transaction.connection.query({ text, isLong: true }, [id]))[0]
  // Millions of letters may go with it.
  await transaction.connection.query({ text: 'set local statement_timeout = 0' })
  // The partitions first: from here on nobody can put anything into the queue. The queue's own row
  // last: whoever waits for it holds no lock that this waits for.
  await run(`select from redrive.partitions where queue_id = $1 order by partition for update`)
  const { waiting, scheduled, leased, dead } = stateCodes
  if (command.isForced !== true) await checkOpen(transaction, queueRow, [waiting, scheduled, leased, dead])
  const gone = await transaction.connection.query(
    {
      text: `with gone as (delete from redrive.items where queue_id = $1 returning ${goneColumns.join(', ')})
        select count(*) as removed, ${goneColumns.map((name) => `null as ${name}`).join(', ')} from gone
        union all select null, letter_id, redrives::text, state::text, letter from gone
        where (letter_id is not null and state <= 2) or (letter is not null and state = 2)`,
      isLong: true,
    },
    [id],
  )
  const [sum, ...rows] = gone.map((row) => ({
    ...row,
    redrives: Number(row.redrives),
    state: Number(row.state),
  }))
  const { removed } = sum as Row
  await endWhatIsGone(transaction, rows, transaction.now())
  // All of its letters are locked by their deletion: nobody changes their counts any more.
  await transaction.flushLetters()
  const letters = await transaction.connection.query({ text: countByState }, [id])
  const archived = (await run(purgeArchive))?.n as number
  const details = {
    ...removalDetails(removed as number, lettersByState(letters)),
    ...(archived > 0 && { archived }),
  }
  await insertEntries(transaction.connection, queueEntries(command.trace, command.name, 1, details))
  await dropSums(transaction.connection, id, transaction.slot)
  for (const table of ['counts', 'letter_counts', 'open_letters', 'group_hours', 'groups', 'letter_edits']) {
    await run(`delete from redrive.${table} where queue_id = $1`)
  }
  await run('delete from redrive.produce_keys where queue_id = $1')
  await run('delete from redrive.lease_ends where queue_id = $1')
  await run('delete from redrive.partitions where queue_id = $1')
  await run('delete from redrive.queues where id = $1')
  transaction.tally.drop(id)
  transaction.changed(command.name, undefined)
  return { removed: removed as number }
}

const countByState = `select c.state, sum(c.n)::int8 as n from redrive.letter_sums c where c.queue_id = $1
  group by c.state having sum(c.n) <> 0`
const purgeArchive = `with gone as (delete from redrive.archive where queue_id = $1 returning 1)
  select count(*) as n from gone`

export async function getQueue(connections: Connections, name: string): Promise<Queue | null> {
  const [row] = await connections.read(
    { name: 'get-queue', text: 'select * from redrive.queues where name = $1' },
    [name],
  )
  return row === undefined ? null : queueOf(row)
}

export async function listQueues(connections: Connections, query: QueuesQuery): Promise<Queue[]> {
  const inNamespace = query.namespace === undefined ? '' : 'and namespace = $3'
  const rows = await connections.read(
    { text: `select * from redrive.queues where name >= $1 ${inNamespace} order by name limit $2` },
    [query.from ?? '', query.countMax, ...(query.namespace === undefined ? [] : [query.namespace])],
  )
  return rows.map(queueOf)
}

/** Letters have groups, which stay as long as their queue. */
async function hasGroups(transaction: Transaction, queueId: number): Promise<boolean> {
  const text = 'select from redrive.groups g where g.queue_id = $1 limit 1'
  return (await transaction.connection.query({ text }, [queueId])).length > 0
}

async function namedAsDeadQueueBy(transaction: Transaction, name: string): Promise<string | undefined> {
  const [row] = await transaction.connection.query(
    { text: 'select name from redrive.queues where dead_queue = $1 limit 1' },
    [name],
  )
  return row?.name as string | undefined
}
