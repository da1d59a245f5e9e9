import { decideSettle, type SettleDecision } from '../../../core/items/decide-settle.ts'
import type { ItemHead, LeasedHead } from '../../../core/items/item.ts'
import { changeByExtend, type ItemChange } from '../../../core/items/plan-transition.ts'
import {
  complete as completed,
  correctLease,
  firstDeadline,
  leasesOfStep,
  retryItem,
  type Transition,
  unlease as unleasedItem,
} from '../../../core/items/transitions.ts'
import type {
  Complete,
  CorrectLeases,
  CorrectLeasesResult,
  Extend,
  Retry,
  SettleRefusal,
  SettleResult,
  Unlease,
} from '../../contract/items.ts'
import { readNumber } from '../../shared/rows/row-values.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { type Decision, executeTransitions } from './execute-transitions.ts'
import { insertLeaseEnds, toLeaseEnd } from './lease-ends.ts'
import { isLocatedRow, locateRows } from './locate-rows.ts'
import { readHeadColumns, stateCodes, toItemHead } from './rows.ts'
import { type RewrittenRow, rewriteRows } from './write-rows.ts'

/**
 * Locks items in the given order. The lock is taken in the lookup by id: it waits for a transaction that is
 * changing the row, and then returns the new version of the row instead of treating it as missing.
 */
export const lockItems: Statement = {
  name: 'lock-items',
  text: `select t.* from unnest($1::int4[], $2::int4[], $3::text[]) as w(queue_id, partition, id)
    cross join lateral (
      select ${readHeadColumns.map((name) => `f.${name}`).join(', ')} from redrive.items f
      where f.queue_id = w.queue_id and f.partition = w.partition and f.id = w.id for update
    ) t`,
}

const extendLeases: Statement = {
  name: 'extend-leases',
  text: `update redrive.items t set lease_deadline = e.deadline, updated_at = e.now
    from unnest($1::int4[], $2::int4[], $3::text[], $4::int8[], $5::int8[])
      as e(queue_id, partition, id, deadline, now) cross join ${locateRows('e')} p
    where ${isLocatedRow('t', 'p')}`,
}

type PartitionKey = Readonly<{ queue: string; partition: number }>

export async function complete(
  transaction: Transaction,
  commands: readonly Complete[],
): Promise<SettleResult[]> {
  return settle(
    transaction,
    commands,
    (command) => command.ids,
    (_, item, queueRow) => completed(item, queueRow.queue),
  )
}

export async function retry(transaction: Transaction, commands: readonly Retry[]): Promise<SettleResult[]> {
  for (const command of commands) {
    const queueRow = await transaction.getWithPartition(command.queue, command.partition)
    await transaction.lockPartitions([{ queueRow, partition: command.partition }])
  }
  const listIds = (command: Retry) => command.items.map((item) => item.id)
  return settle(transaction, commands, listIds, (command, item, queueRow, index) =>
    retryItem(item, command.items[index] as Retry['items'][number], queueRow.queue, command.now),
  )
}

export async function extend(transaction: Transaction, commands: readonly Extend[]): Promise<SettleResult[]> {
  const locked = await lockNamedItems(transaction, commands, (command) => command.ids)
  const extended: ExtendedLease[] = []
  const results = commands.map((command): SettleResult => {
    const { queueRow, items, refused } = locked.decide(command, command.ids)
    if (refused.length > 0) return { isSettled: false, refused }
    const changes = items.map((item): ItemChange => {
      const after: LeasedHead = { ...item, lease: { ...item.lease, deadline: command.deadline } }
      transaction.countChanges.leave(queueRow.id, item)
      transaction.countChanges.enter(queueRow.id, after)
      locked.set(queueRow, after)
      extended.push({ queueId: queueRow.id, item: after, command })
      return changeByExtend(item)
    })
    return { isSettled: true, changes }
  })
  await writeExtended(transaction, extended)
  return results
}

type ExtendedLease = Readonly<{
  queueId: number
  item: LeasedHead
  command: Pick<Extend, 'deadline' | 'now'>
}>

async function writeExtended(transaction: Transaction, extended: readonly ExtendedLease[]): Promise<void> {
  if (extended.length === 0) return
  // If two commands extend the same item, the last one counts.
  const last = [...new Map(extended.map((each) => [`${each.queueId}/${each.item.id}`, each])).values()]
  await transaction.connection.query(extendLeases, [
    encodeInt4s(last.map(({ queueId }) => queueId)),
    encodeInt4s(last.map(({ item }) => item.partition)),
    encodeTexts(last.map(({ item }) => item.id)),
    encodeInt8s(last.map(({ command }) => command.deadline)),
    encodeInt8s(last.map(({ command }) => command.now)),
  ])
  await insertLeaseEnds(transaction.connection, last)
}

const batchesExamined = 100

/** Reads without locks. A batch without a lease to correct has one row without an id. */
const peekLeasesOfStep: Statement = {
  name: 'peek-leases-of-step',
  text: `select ends.number, ends.deadline, ends.queue_id, ends.partition, q.name, s.id
    from (
      select * from redrive.lease_ends where (deadline, number) > ($3, $4::int8) order by deadline, number limit $5
    ) ends
      join redrive.queues q on q.id = ends.queue_id
      left join lateral (
        select i.id from unnest(ends.ids) as i(id) cross join lateral (
          select t.state, t.lease_deadline, t.updated_at from redrive.items t
          where t.queue_id = ends.queue_id and t.partition = ends.partition and t.id = i.id offset 0
        ) f
        where f.state = ${stateCodes.leased} and f.lease_deadline = ends.deadline
          and f.updated_at > $1 and f.updated_at <= $2
      ) s on true
    order by ends.deadline, ends.number`,
}

export async function correctLeases(
  transaction: Transaction,
  { step, now, after }: CorrectLeases,
): Promise<CorrectLeasesResult> {
  const given = leasesOfStep(step, now)
  const from = after ?? { deadline: firstDeadline(step, now), key: '0' }
  const values = [given.after, given.until, from.deadline, from.key, batchesExamined]
  const ends = (await transaction.connection.query(peekLeasesOfStep, values)).map(toLeaseEnd)
  const commands = ends.flatMap(({ queue, partition, id }) =>
    id === null ? [] : [{ queue, partition, ids: [id] }],
  )
  const locked = await lockNamedItems(transaction, commands, ({ ids }) => ids)
  const corrected: ExtendedLease[] = []
  for (const command of commands) {
    const { queueRow, items } = locked.decide(command, command.ids)
    for (const item of items) {
      const deadline = correctLease(item, step, now)
      if (deadline === undefined) continue
      const after: LeasedHead = { ...item, updatedAt: now, lease: { ...item.lease, deadline } }
      transaction.countChanges.leave(queueRow.id, item)
      transaction.countChanges.enter(queueRow.id, after)
      locked.set(queueRow, after)
      corrected.push({ queueId: queueRow.id, item: after, command: { deadline, now } })
    }
  }
  await writeExtended(transaction, corrected)
  const last = ends.at(-1)
  const isEnd = last === undefined || new Set(ends.map(({ number }) => number)).size < batchesExamined
  return {
    corrected: corrected.length,
    next: isEnd ? null : { deadline: last.deadline, key: String(last.number) },
  }
}

export async function unlease(
  transaction: Transaction,
  commands: readonly Unlease[],
): Promise<{ unleased: number }[]> {
  const locked = await lockNamedItems(transaction, commands, (command) => command.ids)
  const rewritten: RewrittenRow[] = []
  const results = commands.map((command) => {
    const { queueRow, items } = locked.decide(command, command.ids)
    for (const item of items) {
      const after = unleasedItem(item, command.now)
      rewritten.push({ before: item, after: { queueId: queueRow.id, queue: queueRow.queue, item: after } })
      locked.set(queueRow, after)
    }
    return { unleased: items.length }
  })
  await rewriteRows(transaction, rewritten)
  return results
}

async function settle<C extends Complete | Retry>(
  transaction: Transaction,
  commands: readonly C[],
  idsOf: (command: C) => readonly string[],
  decide: (command: C, item: LeasedHead, queueRow: QueueRow, index: number) => Transition,
): Promise<SettleResult[]> {
  const locked = await lockNamedItems(transaction, commands, idsOf)
  const decisions: Decision[] = []
  const outcomes = commands.map((command): SettleOutcome => {
    const { queueRow, items, refused } = locked.decide(command, idsOf(command))
    if (refused.length > 0) return { refused }
    const first = decisions.length
    for (const [index, item] of items.entries()) {
      decisions.push({ queueRow, item, transition: decide(command, item, queueRow, index), now: command.now })
      // In every state that it gets, the item cannot be settled again under this id.
      locked.delete(queueRow, item)
    }
    return { first, count: items.length }
  })
  const changes = await executeTransitions(transaction, decisions)
  return outcomes.map((outcome): SettleResult => {
    if (!('first' in outcome)) return { isSettled: false, refused: outcome.refused }
    return { isSettled: true, changes: changes.slice(outcome.first, outcome.first + outcome.count) }
  })
}

/** Refusals, or the decisions about the items of a command: `count` of them, from index `first` on. */
type SettleOutcome = Readonly<{ refused: readonly SettleRefusal[] } | { first: number; count: number }>

/** Locks the items of the commands. `listIds` returns the ids of a command. */
export async function lockNamedItems<C extends PartitionKey>(
  transaction: Transaction,
  commands: readonly C[],
  idsOf: (command: C) => readonly string[],
): Promise<LockedItems> {
  const queues = new Map<string, QueueRow>()
  const wanted: ItemKey[] = []
  for (const command of commands) {
    const queueRow = await transaction.getWithPartition(command.queue, command.partition)
    queues.set(command.queue, queueRow)
    for (const id of idsOf(command)) wanted.push({ queueId: queueRow.id, partition: command.partition, id })
  }
  wanted.sort(compareLockOrder)
  const rows =
    wanted.length === 0
      ? []
      : await transaction.connection.query(lockItems, [
          encodeInt4s(wanted.map(({ queueId }) => queueId)),
          encodeInt4s(wanted.map(({ partition }) => partition)),
          encodeTexts(wanted.map(({ id }) => id)),
        ])
  return new LockedItems(queues, rows)
}

type ItemKey = Readonly<{ queueId: number; partition: number; id: string }>

function compareLockOrder(left: ItemKey, right: ItemKey): number {
  if (left.queueId !== right.queueId) return left.queueId - right.queueId
  if (left.partition !== right.partition) return left.partition - right.partition
  return left.id < right.id ? -1 : Number(left.id > right.id)
}

/** The locked items of commands, each as it is after the commands so far. */
class LockedItems {
  readonly #queues: ReadonlyMap<string, QueueRow>
  readonly #items = new Map<string, ItemHead>()

  constructor(queues: ReadonlyMap<string, QueueRow>, rows: readonly Row[]) {
    this.#queues = queues
    const names = new Map([...queues.values()].map((queueRow) => [queueRow.id, queueRow.queue.name]))
    for (const row of rows) {
      const queueId = readNumber(row, 'queue_id')
      const item = toItemHead(row, names.get(queueId) ?? '')
      this.#items.set(`${queueId}/${item.partition}/${item.id}`, item)
    }
  }

  /** Decides which of the items a command of this partition may settle. */
  decide(
    { queue, partition }: PartitionKey,
    ids: readonly string[],
  ): SettleDecision & Readonly<{ queueRow: QueueRow }> {
    const queueRow = this.#queues.get(queue) as QueueRow
    const find = (id: string) => this.#items.get(`${queueRow.id}/${partition}/${id}`)
    return { queueRow, ...decideSettle(ids, find) }
  }

  set(queueRow: QueueRow, item: ItemHead): void {
    this.#items.set(`${queueRow.id}/${item.partition}/${item.id}`, item)
  }

  delete(queueRow: QueueRow, item: ItemHead): void {
    this.#items.delete(`${queueRow.id}/${item.partition}/${item.id}`)
  }
}
