import { type Item, listedState } from '../../../core/item.ts'
import { failedAgainAt } from '../../../core/letter.ts'
import type { Counts, CountsQuery, PartitionCounts } from '../../contract/counts.ts'
import { countColumns, countNames } from '../../shared/count-columns.ts'
import type { Connections, Statement } from '../connection/connections.ts'
import { int4s, int8s, texts } from '../connection/encode-arrays.ts'
import { LetterTally } from './letter-counts.ts'

type Count = keyof Counts

const columnList = Object.values(countColumns)

type Delta = {
  readonly queueId: number
  readonly partition: number
  readonly counts: Record<Count, number>
  readonly createdMs: Sum
  readonly leaseMs: Sum
}

/** Exact beyond what a number can hold; for each part a number does, and costs much less. */
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
/** Added to a time in milliseconds it is still a safe integer. */
const partMax = 2 ** 52

/** The changes to the counts that a write makes, gathered so that each partition is written once. */
export class Tally {
  readonly letters = new LetterTally()
  /** By queue and partition in one number: there are far fewer partitions than that. */
  readonly #deltas = new Map<number, Delta>()
  /** The one that was last looked for: mostly it is the next one, too. */
  #last: Delta | undefined

  add(queueId: number, partition: number, count: Count, by = 1): void {
    this.#at(queueId, partition).counts[count] += by
  }

  enter(queueId: number, item: Item): void {
    this.#weigh(queueId, item, 1)
    if (item.groupId !== null) this.letters.weigh(queueId, item, 1)
  }

  leave(queueId: number, item: Item): void {
    this.#weigh(queueId, item, -1)
    if (item.groupId !== null) this.letters.weigh(queueId, item, -1)
  }

  /** Put into this queue for the first time. */
  accept(queueId: number, item: Item): void {
    this.enter(queueId, item)
    this.add(queueId, item.partition, 'accepted')
    if (item.groupId !== null) this.letters.arrive(queueId, item.groupId, item.diedAt ?? item.createdAt)
  }

  /** A letter that failed anew: the group that it is in now has been seen again. */
  failAgain(queueId: number, item: Item): void {
    if (item.groupId !== null) this.letters.arrive(queueId, item.groupId, failedAgainAt(item))
  }

  /** An item that was accepted now and is nowhere in this process: its bytes were copied inside the database. */
  addWaiting(queueId: number, partition: number, createdAt: number): void {
    const delta = this.#at(queueId, partition)
    delta.counts.waiting++
    delta.counts.accepted++
    delta.createdMs.add(ms(createdAt))
  }

  /** For changes whose sums the database made. */
  addSums(queueId: number, partition: number, createdMs: bigint, leaseMs: bigint): void {
    const delta = this.#at(queueId, partition)
    delta.createdMs.addMany(createdMs)
    delta.leaseMs.addMany(leaseMs)
  }

  /** The queue is gone, and its counts with it. */
  drop(queueId: number): void {
    this.letters.drop(queueId)
    for (const [key, delta] of this.#deltas) if (delta.queueId === queueId) this.#deltas.delete(key)
    this.#last = undefined
  }

  /** Sorted: whoever writes several rows of counts locks them in this order. */
  encode(): Buffer[] {
    const deltas = [...this.#deltas.values()].sort(
      (left, right) => left.queueId - right.queueId || left.partition - right.partition,
    )
    return [
      int4s(deltas.map((delta) => delta.queueId)),
      int4s(deltas.map((delta) => delta.partition)),
      ...countNames.map((name) => int8s(deltas.map((delta) => delta.counts[name]))),
      texts(deltas.map((delta) => String(delta.createdMs))),
      texts(deltas.map((delta) => String(delta.leaseMs))),
    ]
  }

  get isEmpty(): boolean {
    return this.#deltas.size === 0
  }

  #weigh(queueId: number, item: Item, by: 1 | -1): void {
    const delta = this.#at(queueId, item.partition)
    const gauge = listedState(item)
    delta.counts[gauge] += by
    if (gauge === 'waiting' || gauge === 'leased') delta.createdMs.add(by * ms(item.createdAt))
    if (item.state === 'leased') delta.leaseMs.add(by * ms(item.lease.deadline))
  }

  #at(queueId: number, partition: number): Delta {
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

/** Cut off towards zero, as the database divides whole numbers: what is added is what is taken away. */
function ms(instant: number): number {
  return (instant - (instant % 1000)) / 1000
}

/** Adds to the counts what `select` gives: queue_id, partition, slot, then the named columns. */
export function addToCounts(columns: readonly string[], select: string): string {
  const added = columns.map((column) => `${column} = c.${column} + excluded.${column}`).join(', ')
  return `insert into redrive.counts as c (queue_id, partition, slot, ${columns.join(', ')}) ${select}
    on conflict (queue_id, partition, slot) do update set ${added}`
}

export const tallyWidth = 2 + countNames.length + 2

/** Adds an encoded tally; its parameters start at number `first`, the slot is parameter `slot`. */
export function addTally(first: number, slot: number, where = ''): string {
  const parameters = [
    `$${first}::int4[], $${first + 1}::int4[]`,
    ...columnList.map((_, index) => `$${first + 2 + index}::int8[]`),
    `$${first + tallyWidth - 2}::text[], $${first + tallyWidth - 1}::text[]`,
  ]
  const columns = [...columnList, 'created_sum_ms', 'lease_sum_ms']
  return addToCounts(
    columns,
    `select d.queue_id, d.partition, $${slot}::int4, ${columnList.map((column) => `d.${column}`).join(', ')},
       d.created_sum_ms::numeric, d.lease_sum_ms::numeric
     from unnest(${parameters.join(', ')}) as d(queue_id, partition, ${columns.join(', ')}) ${where}`,
  )
}

export const writeTally: Statement = { name: 'write-tally', text: addTally(1, tallyWidth + 1) }

const sums = columnList.map((column) => `coalesce(sum(c.${column}), 0)::int8 as ${column}`).join(', ')

/** Every partition with the sums of its counts, as `counted`. */
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
    const counts = countsOf(row)
    return {
      queue: row.name as string,
      partition: row.partition as number,
      ...counts,
      createdAtMean: meanOf(row.created_sum as string, counts.waiting + counts.leased),
      leaseDeadlineMean: meanOf(row.lease_sum as string, counts.leased),
    }
  })
}

export function countsOf(row: Record<string, unknown>): Counts {
  return Object.fromEntries(countNames.map((name) => [name, row[countColumns[name]]])) as Counts
}

function meanOf(sumMs: string, count: number): number | null {
  return count === 0 ? null : Number(BigInt(sumMs) / BigInt(count)) * 1000
}
