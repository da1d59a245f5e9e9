import { computeFailedAgainAt } from '../../../core/dead-letters/letter.ts'
import { type ItemHead, toListedState } from '../../../core/items/item.ts'
import type {
  Counts,
  CountsQuery,
  PartitionCounts,
  QueueCounts,
  QueueCountsQuery,
} from '../../contract/counts.ts'
import {
  countColumns,
  countNames,
  decodeCounts,
  decodeQueueCounts,
  printQueueCounts,
} from '../../shared/counts/count-columns.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import type { Row, Statement } from '../connection/connection.ts'
import type { Connections } from '../connection/connections.ts'
import { encodeInt4s, encodeInt8s, encodeTexts } from '../connection/encode-arrays.ts'
import { LetterCountChanges } from './letter-counts.ts'

type Count = keyof Counts

const columnList = Object.values(countColumns)

type Delta = {
  readonly queueId: number
  readonly partition: number
  readonly counts: Record<Count, number>
  readonly createdMs: Sum
  readonly leaseMs: Sum
}

/**
 * An exact sum beyond the safe integers. Adds to a number, which is much cheaper, and carries to a bigint.
 */
class Sum {
  #whole = 0n
  #part = 0

  add(value: number): void {
    this.#part += value
    if (this.#part > partMax || this.#part < -partMax) this.#carry()
  }

  addMany(value: bigint): void {
    this.#whole += value
  }

  toString(): string {
    this.#carry()
    return String(this.#whole)
  }

  #carry(): void {
    this.#whole += BigInt(this.#part)
    this.#part = 0
  }
}
/** The sum of this and a time in milliseconds is a safe integer. */
const partMax = 2 ** 52

/**
 * The changes that a transaction makes to the counts of items. They are summed, so that each partition is
 * written once.
 */
export class CountChanges {
  readonly letters = new LetterCountChanges()
  /**
   * By queue and partition in one number: creating a text for each item would cost more than counting it.
   */
  readonly #deltas = new Map<number, Delta>()
  /** The delta that was used last: consecutive items are usually of the same partition. */
  #last: Delta | undefined

  add(queueId: number, partition: number, count: Count, by = 1): void {
    this.#getDelta(queueId, partition).counts[count] += by
  }

  /** Counts an item in the state that it has now. */
  enter(queueId: number, item: ItemHead): void {
    this.#addItem(queueId, item, 1)
    if (item.groupId !== null) this.letters.addLetter(queueId, item, 1)
  }

  /** Undoes `enter`. `item` is the item as it was counted, before its change. */
  leave(queueId: number, item: ItemHead): void {
    this.#addItem(queueId, item, -1)
    if (item.groupId !== null) this.letters.addLetter(queueId, item, -1)
  }

  /** Counts an item that enters the queue for the first time. */
  accept(queueId: number, item: ItemHead): void {
    this.enter(queueId, item)
    this.add(queueId, item.partition, 'accepted')
    this.#arrive(queueId, item, item.deadLetteredAt ?? item.createdAt)
  }

  /** Counts an arrival in the group of a letter that failed again. */
  failAgain(queueId: number, item: ItemHead): void {
    this.#arrive(queueId, item, computeFailedAgainAt(item))
  }

  #arrive(queueId: number, { groupId }: ItemHead, at: number): void {
    if (groupId === null) return
    this.letters.addArrival(queueId, groupId, at)
    this.letters.noteArrival(groupId, at)
  }

  /** `accept` for a waiting item that was copied inside the database, and is not in this process. */
  addWaiting(queueId: number, partition: number, createdAt: number): void {
    const delta = this.#getDelta(queueId, partition)
    delta.counts.waiting++
    delta.counts.accepted++
    delta.createdMs.add(toMs(createdAt))
  }

  /** Adds sums that the database computed. */
  addSums(queueId: number, partition: number, createdMs: bigint, leaseMs: bigint): void {
    const delta = this.#getDelta(queueId, partition)
    delta.createdMs.addMany(createdMs)
    delta.leaseMs.addMany(leaseMs)
  }

  /** Forgets the changes of a queue that was deleted with its counts. */
  dropQueue(queueId: number): void {
    this.letters.dropQueue(queueId)
    for (const [key, delta] of this.#deltas) if (delta.queueId === queueId) this.#deltas.delete(key)
    this.#last = undefined
  }

  /**
   * The parameters of `writeCountChanges`. Sorted, so that all writers lock the rows of counts in one order.
   */
  encode(): Buffer[] {
    const deltas = [...this.#deltas.values()].sort(
      (left, right) => left.queueId - right.queueId || left.partition - right.partition,
    )
    return [
      encodeInt4s(deltas.map((delta) => delta.queueId)),
      encodeInt4s(deltas.map((delta) => delta.partition)),
      ...countNames.map((name) => encodeInt8s(deltas.map((delta) => delta.counts[name]))),
      encodeTexts(deltas.map((delta) => String(delta.createdMs))),
      encodeTexts(deltas.map((delta) => String(delta.leaseMs))),
    ]
  }

  get isEmpty(): boolean {
    return this.#deltas.size === 0
  }

  #addItem(queueId: number, item: ItemHead, by: 1 | -1): void {
    const delta = this.#getDelta(queueId, item.partition)
    const gauge = toListedState(item)
    delta.counts[gauge] += by
    if (gauge === 'waiting' || gauge === 'leased') delta.createdMs.add(by * toMs(item.createdAt))
    if (item.state === 'leased') delta.leaseMs.add(by * toMs(item.lease.deadline))
  }

  #getDelta(queueId: number, partition: number): Delta {
    const last = this.#last
    if (last !== undefined && last.queueId === queueId && last.partition === partition) return last
    const key = queueId * 2 ** 20 + partition
    let delta = this.#deltas.get(key)
    if (delta === undefined) {
      delta = { queueId, partition, counts: { ...noCounts }, createdMs: new Sum(), leaseMs: new Sum() }
      this.#deltas.set(key, delta)
    }
    this.#last = delta
    return delta
  }
}

const noCounts = Object.fromEntries(countNames.map((name) => [name, 0])) as Record<Count, number>

/**
 * Rounded towards zero, as the database divides integers, so that items leave with the number they entered
 * with.
 */
function toMs(instant: number): number {
  return (instant - (instant % 1000)) / 1000
}

/** Adds the rows of `select` to the counts: queue_id, partition, slot, then the named columns. */
export function addToCounts(columns: readonly string[], select: string): string {
  const added = columns.map((column) => `${column} = c.${column} + excluded.${column}`).join(', ')
  return `insert into redrive.counts as c (queue_id, partition, slot, ${columns.join(', ')}) ${select}
    on conflict (queue_id, partition, slot) do update set ${added}`
}

export const changeParameterCount = 2 + countNames.length + 2

/** Adds encoded changes. Their parameters start at number `first`; the slot is parameter `slot`. */
export function addChanges(first: number, slot: number, where = ''): string {
  const parameters = [
    `$${first}::int4[], $${first + 1}::int4[]`,
    ...columnList.map((_, index) => `$${first + 2 + index}::int8[]`),
    `$${first + changeParameterCount - 2}::text[], $${first + changeParameterCount - 1}::text[]`,
  ]
  const columns = [...columnList, 'created_sum_ms', 'lease_sum_ms']
  return addToCounts(
    columns,
    `select d.queue_id, d.partition, $${slot}::int4, ${columnList.map((column) => `d.${column}`).join(', ')},
       d.created_sum_ms::numeric, d.lease_sum_ms::numeric
     from unnest(${parameters.join(', ')}) as d(queue_id, partition, ${columns.join(', ')}) ${where}`,
  )
}

export const writeCountChanges: Statement = {
  name: 'write-count-changes',
  text: addChanges(1, changeParameterCount + 1),
}

const sums = columnList.map((column) => `coalesce(sum(c.${column}), 0)::int8 as ${column}`).join(', ')

/** Every partition with the sums of its counts over all slots. Needs a `group by`. */
export const countedPartitions = `select q.name, p.queue_id, p.partition, ${sums},
    coalesce(sum(c.created_sum_ms), 0) as created_sum, coalesce(sum(c.lease_sum_ms), 0) as lease_sum
  from redrive.partitions p
    join redrive.queues q on q.id = p.queue_id
    left join redrive.counts c on c.queue_id = p.queue_id and c.partition = p.partition`

export async function readCounts(connections: Connections, query: CountsQuery): Promise<PartitionCounts[]> {
  const where = query.queue === undefined ? '' : 'where q.name = $1'
  const rows = await connections.read(
    {
      text: `${countedPartitions} ${where} group by q.name, p.queue_id, p.partition order by q.name, p.partition`,
    },
    query.queue === undefined ? [] : [query.queue],
  )
  return rows.map((row) => {
    const { createdMs, leaseMs, ...partition } = decodePartition(row)
    return {
      ...partition,
      createdAtMean: computeMean(createdMs, partition.waiting + partition.leased),
      leaseDeadlineMean: computeMean(leaseMs, partition.leased),
    }
  })
}

export async function readQueueCounts(
  connections: Connections,
  { queues, countMax }: QueueCountsQuery,
): Promise<QueueCounts[]> {
  const where = queues === undefined ? '' : 'where q.name = any ($1::text[])'
  const partitions = `${countedPartitions} ${where} group by q.name, p.queue_id, p.partition`
  const values = queues === undefined ? [] : [encodeTexts(queues)]
  const rows = await connections.read({ text: printQueueCounts(partitions, countMax) }, values)
  return rows.map(decodeQueueCounts)
}

/** From a row of `countedPartitions`. */
export function decodePartition(
  row: Row,
): Counts & Readonly<{ queue: string; partition: number; createdMs: bigint; leaseMs: bigint }> {
  return {
    queue: readText(row, 'name'),
    partition: readNumber(row, 'partition'),
    ...decodeCounts(row),
    createdMs: BigInt(readText(row, 'created_sum')),
    leaseMs: BigInt(readText(row, 'lease_sum')),
  }
}

function computeMean(sumMs: bigint, count: number): number | null {
  return count === 0 ? null : Number(sumMs / BigInt(count)) * 1000
}
