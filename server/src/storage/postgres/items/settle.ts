import { decideSettle, type SettleDecision } from '../../../core/decide-settle.ts'
import type { ItemHead, LeasedHead } from '../../../core/item.ts'
import { changeByExtend, type ItemChange } from '../../../core/plan-transition.ts'
import {
  complete as completed,
  retryItem,
  type Transition,
  unlease as unleasedItem,
} from '../../../core/transitions.ts'
import type { Complete, Extend, Retry, SettleResult, Unlease } from '../../contract/items.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { int4s, int8s, texts } from '../connection/encode-arrays.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { type Decision, executeTransitions } from './execute-transitions.ts'
import { insertLeaseEnds } from './lease-ends.ts'
import { isLocatedRow, locateRows } from './locate-rows.ts'
import { readHeadColumns, toItemHead } from './rows.ts'
import { type RewrittenRow, rewriteRows } from './write-rows.ts'

/**
 * Items that are asked for, locked in the order in which they are asked for. Locked where they are found
 * by id: a row that somebody changes meanwhile is waited for and then looked at again, not taken for gone.
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

type Place = Readonly<{ queue: string; partition: number }>

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
  const idsOf = (command: Retry) => command.items.map((item) => item.id)
  return settle(transaction, commands, idsOf, (command, item, queueRow, index) =>
    retryItem(item, command.items[index] as Retry['items'][number], queueRow.queue, command.now),
  )
}

export async function extend(transaction: Transaction, commands: readonly Extend[]): Promise<SettleResult[]> {
  const held = await hold(transaction, commands, (command) => command.ids)
  const extended: { queueId: number; item: LeasedHead; command: Extend }[] = []
  const results = commands.map((command): SettleResult => {
    const taken = held.decide(command, command.ids)
    if (taken.refused.length > 0) return { isSettled: false, refused: taken.refused }
    const changes = taken.items.map((item): ItemChange => {
      const after: LeasedHead = { ...item, lease: { ...item.lease, deadline: command.deadline } }
      const queueId = taken.queueRow.id
      transaction.tally.leave(queueId, item)
      transaction.tally.enter(queueId, after)
      held.put(taken.queueRow, after)
      extended.push({ queueId, item: after, command })
      return changeByExtend(item)
    })
    return { isSettled: true, changes }
  })
  if (extended.length > 0) {
    // The last word of each item counts, when two commands extend the same one.
    const last = [...new Map(extended.map((each) => [`${each.queueId}/${each.item.id}`, each])).values()]
    await transaction.connection.query(extendLeases, [
      int4s(last.map(({ queueId }) => queueId)),
      int4s(last.map(({ item }) => item.partition)),
      texts(last.map(({ item }) => item.id)),
      int8s(last.map(({ command }) => command.deadline)),
      int8s(last.map(({ command }) => command.now)),
    ])
    await insertLeaseEnds(transaction.connection, last)
  }
  return results
}

export async function unlease(
  transaction: Transaction,
  commands: readonly Unlease[],
): Promise<{ unleased: number }[]> {
  const held = await hold(transaction, commands, (command) => command.ids)
  const rewritten: RewrittenRow[] = []
  const results = commands.map((command) => {
    const { queueRow, items } = held.decide(command, command.ids)
    for (const item of items) {
      const after = unleasedItem(item, command.now)
      rewritten.push({ before: item, after: { queueId: queueRow.id, queue: queueRow.queue, item: after } })
      held.put(queueRow, after)
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
  const held = await hold(transaction, commands, idsOf)
  const decisions: Decision[] = []
  const outcomes = commands.map((command) => {
    const taken = held.decide(command, idsOf(command))
    if (taken.refused.length > 0) return taken.refused
    return taken.items.map((item, index) => {
      const { queueRow } = taken
      decisions.push({ queueRow, item, transition: decide(command, item, queueRow, index), now: command.now })
      // Whatever becomes of it, it cannot be settled again under this id.
      held.drop(queueRow, item)
      return decisions.length - 1
    })
  })
  const changes = await executeTransitions(transaction, decisions)
  return outcomes.map((outcome): SettleResult => {
    const refused = outcome.filter((each) => typeof each === 'object')
    if (refused.length > 0) return { isSettled: false, refused }
    return { isSettled: true, changes: outcome.map((at) => changes[at as number] as ItemChange) }
  })
}

async function hold<C extends Place>(
  transaction: Transaction,
  commands: readonly C[],
  idsOf: (command: C) => readonly string[],
): Promise<Held> {
  const queues = new Map<string, QueueRow>()
  const wanted: Wanted[] = []
  for (const command of commands) {
    const queueRow = await transaction.getWithPartition(command.queue, command.partition)
    queues.set(command.queue, queueRow)
    for (const id of idsOf(command)) wanted.push({ queueId: queueRow.id, partition: command.partition, id })
  }
  wanted.sort(inLockOrder)
  const rows =
    wanted.length === 0
      ? []
      : await transaction.connection.query(lockItems, [
          int4s(wanted.map(({ queueId }) => queueId)),
          int4s(wanted.map(({ partition }) => partition)),
          texts(wanted.map(({ id }) => id)),
        ])
  return new Held(queues, rows)
}

type Wanted = Readonly<{ queueId: number; partition: number; id: string }>

function inLockOrder(left: Wanted, right: Wanted): number {
  if (left.queueId !== right.queueId) return left.queueId - right.queueId
  if (left.partition !== right.partition) return left.partition - right.partition
  return left.id < right.id ? -1 : Number(left.id > right.id)
}

/** The items that commands ask for, locked, as they stand after the commands before. */
class Held {
  readonly #queues: ReadonlyMap<string, QueueRow>
  readonly #items = new Map<string, ItemHead>()

  constructor(queues: ReadonlyMap<string, QueueRow>, rows: readonly Row[]) {
    this.#queues = queues
    const names = new Map([...queues.values()].map((queueRow) => [queueRow.id, queueRow.queue.name]))
    for (const row of rows) {
      const item = toItemHead(row, names.get(row.queue_id as number) ?? '')
      this.#items.set(`${row.queue_id}/${item.partition}/${item.id}`, item)
    }
  }

  decide(place: Place, ids: readonly string[]): SettleDecision & Readonly<{ queueRow: QueueRow }> {
    const queueRow = this.#queues.get(place.queue) as QueueRow
    const find = (id: string) => this.#items.get(`${queueRow.id}/${place.partition}/${id}`)
    return { queueRow, ...decideSettle(ids, find) }
  }

  put(queueRow: QueueRow, item: ItemHead): void {
    this.#items.set(`${queueRow.id}/${item.partition}/${item.id}`, item)
  }

  drop(queueRow: QueueRow, item: ItemHead): void {
    this.#items.delete(`${queueRow.id}/${item.partition}/${item.id}`)
  }
}
