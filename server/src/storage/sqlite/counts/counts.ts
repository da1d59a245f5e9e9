import { instantMax } from '../../../core/instant.ts'
import { type Item, listedState } from '../../../core/item.ts'
import { partitionsMax } from '../../../core/queue.ts'
import type { Counts, PartitionCounts } from '../../contract/counts.ts'
import type { Difference } from '../../contract/difference.ts'
import { countColumns, countNames, gauges } from '../../shared/count-columns.ts'
import type { Database, Row } from '../connection/database.ts'
import { LetterTally, repairLetters, verifyLetters } from './letter-counts.ts'
import { compareCampaignLetters, repairCampaign } from './verify-campaigns.ts'

type Count = keyof Counts

const listed = ['c.partition', ...Object.values(countColumns).map((column) => `c.${column}`)].join(', ')

/** Sums of times are kept in milliseconds from here: a hundred million of them still fit 64 bits. */
const sumEpochMs = Date.UTC(2025, 0, 1)

type Delta = {
  queueId: number
  partition: number
  counts: Map<Count, number>
  createdMs: number
  leaseMs: number
  /** Leased with an end: only these have a part in the mean. */
  leases: number
  lastId: string
}

/** The changes to the counts that a transaction makes, gathered so that each partition is written once. */
export class Tally {
  /** By group, and by the minute they died. */
  readonly letters = new LetterTally()
  readonly #deltas = new Map<number, Delta>()
  readonly #dropped = new Set<number>()
  #latest: Delta | undefined

  add(queueId: number, partition: number, count: Count, by = 1): void {
    const { counts } = this.#at(queueId, partition)
    counts.set(count, (counts.get(count) ?? 0) + by)
  }

  enter(queueId: number, item: Item): void {
    this.#weigh(queueId, item, 1)
  }

  /** `enter` for so many letters that wait, which are counted by group elsewhere. */
  addWaiting(queueId: number, partition: number, createdAt: number, by: number): void {
    this.add(queueId, partition, 'waiting', by)
    this.#at(queueId, partition).createdMs += by * sumMs(createdAt)
  }

  leave(queueId: number, item: Item): void {
    this.#weigh(queueId, item, -1)
  }

  /** `leave` for a leased item of which only its times are known. */
  removeLeased(queueId: number, partition: number, createdAt: number, deadline: number): void {
    const delta = this.#at(queueId, partition)
    delta.counts.set('leased', (delta.counts.get('leased') ?? 0) - 1)
    delta.createdMs -= sumMs(createdAt)
    weighLease(delta, deadline, -1)
  }

  /** The newest id given in a partition is kept with its counts. */
  newest(queueId: number, partition: number, id: string): void {
    this.#at(queueId, partition).lastId = id
  }

  take(other: Tally): void {
    // What earlier units of this commit counted in a queue went with it.
    for (const queueId of other.#dropped) this.drop(queueId)
    this.letters.take(other.letters)
    for (const delta of other.#deltas.values()) {
      const mine = this.#at(delta.queueId, delta.partition)
      for (const [count, by] of delta.counts) mine.counts.set(count, (mine.counts.get(count) ?? 0) + by)
      mine.createdMs += delta.createdMs
      mine.leaseMs += delta.leaseMs
      mine.leases += delta.leases
      if (delta.lastId > mine.lastId) mine.lastId = delta.lastId
    }
  }

  /** The queue is gone, and its counts with it. */
  drop(queueId: number): void {
    for (const [key, delta] of this.#deltas) if (delta.queueId === queueId) this.#deltas.delete(key)
    this.#latest = undefined
    this.#dropped.add(queueId)
    this.letters.drop(queueId)
  }

  /** Writes what was gathered so far, and begins anew. */
  flush(database: Database): void {
    this.write(database)
    this.#deltas.clear()
    this.#latest = undefined
    this.letters.clear()
  }

  write(database: Database): void {
    const sets = countNames.map((name) => `${countColumns[name]} = ${countColumns[name]} + ?`).join(', ')
    for (const delta of this.#deltas.values()) {
      database.run(
        `update counts set ${sets}, created_sum_ms = created_sum_ms + ?, lease_sum_ms = lease_sum_ms + ?,
           lease_sum_count = lease_sum_count + ?, last_id = max(last_id, ?)
         where queue_id = ? and partition = ?`,
        ...countNames.map((name) => delta.counts.get(name) ?? 0),
        // As integers: a JavaScript number would turn the sum into a float and lose its last digits.
        BigInt(delta.createdMs),
        BigInt(delta.leaseMs),
        delta.leases,
        delta.lastId,
        delta.queueId,
        delta.partition,
      )
    }
    this.letters.write(database)
  }

  #weigh(queueId: number, item: Item, by: 1 | -1): void {
    const delta = this.#at(queueId, item.partition)
    const gauge = listedState(item)
    delta.counts.set(gauge, (delta.counts.get(gauge) ?? 0) + by)
    if (gauge === 'waiting' || gauge === 'leased') delta.createdMs += by * sumMs(item.createdAt)
    if (item.state === 'leased') weighLease(delta, item.lease.deadline, by)
    if (item.groupId !== null) this.letters.weigh(queueId, item.groupId, item, by)
  }

  #at(queueId: number, partition: number): Delta {
    // Items come in runs of one partition: most of the time it is the one before.
    if (this.#latest?.queueId === queueId && this.#latest.partition === partition) return this.#latest
    // As a number: to make a text for each item would cost more than to count it.
    const key = queueId * partitionsMax + partition
    let delta = this.#deltas.get(key)
    if (delta === undefined) {
      delta = { queueId, partition, counts: new Map(), createdMs: 0, leaseMs: 0, leases: 0, lastId: '' }
      this.#deltas.set(key, delta)
    }
    this.#latest = delta
    return delta
  }
}

export function readCounts(database: Database, queue: string | undefined): PartitionCounts[] {
  const where = queue === undefined ? '' : 'where q.name = ?'
  const rows = database.all(
    `select q.name as queue, ${listed},
       cast(c.created_sum_ms as text) as created_sum, cast(c.lease_sum_ms as text) as lease_sum, c.lease_sum_count
     from counts c join queues q on q.id = c.queue_id ${where} order by q.name, c.partition`,
    ...(queue === undefined ? [] : [queue]),
  )
  return rows.map((row) => ({
    queue: row.queue as string,
    partition: row.partition as number,
    ...countsOf(row),
    createdAtMean: meanOf(row.created_sum as string, (row.waiting as number) + (row.leased as number)),
    leaseDeadlineMean: meanOf(row.lease_sum as string, row.lease_sum_count as number),
  }))
}

/** Compares the gauges with the rows, those of the archive too, and the totals with the law of conservation. */
export function verifyCounts(database: Database): Difference[] {
  const differences: Difference[] = []
  const actual = new Map<string, Row>()
  const rows = database.all(
    `select queue_id, partition,
       sum(state = 0 and available_at is null) as waiting, sum(state = 0 and available_at is not null) as scheduled,
       sum(state = 1) as leased, sum(state = 2) as done, sum(state = 3) as dead,
       sum(state = 4) as discarded
     from items group by queue_id, partition`,
  )
  for (const row of rows) actual.set(`${row.queue_id}/${row.partition}`, row)
  const archived = new Map<string, number>()
  for (const row of database.all(
    'select queue_id, partition, count(*) as n from archive group by queue_id, partition',
  )) {
    archived.set(`${row.queue_id}/${row.partition}`, row.n as number)
  }
  for (const row of database.all(
    `select q.name as queue, c.queue_id, ${listed} from counts c join queues q on q.id = c.queue_id
     order by q.name, c.partition`,
  )) {
    const place = { queue: row.queue as string, partition: row.partition as number }
    const key = `${row.queue_id}/${row.partition}`
    const there = actual.get(key)
    const counts = countsOf(row)
    for (const gauge of gauges) {
      const found = (there?.[gauge] as number | undefined) ?? 0
      if (found !== counts[gauge])
        differences.push({ ...place, count: gauge, counted: counts[gauge], actual: found })
    }
    const kept = archived.get(key) ?? 0
    if (kept !== counts.archived)
      differences.push({ ...place, count: 'archived', counted: counts.archived, actual: kept })
    const { accepted, ...parts } = counts
    const sum = Object.values(parts).reduce((total, part) => total + part, 0)
    if (sum !== accepted)
      differences.push({ ...place, count: 'conservation', counted: accepted, actual: sum })
  }
  return [...differences, ...verifyLetters(database), ...compareCampaignLetters(database)]
}

/** Sets the gauges to what the rows say, and `accepted` to what then balances. */
export function repairCounts(database: Database, differences: readonly Difference[]): void {
  const ofCampaigns = differences.filter((found) => 'campaign' in found)
  for (const id of new Set(ofCampaigns.map(({ campaign }) => campaign))) repairCampaign(database, id)
  const ofQueues = differences.filter((found) => 'queue' in found)
  const ofLetters = ofQueues.filter(({ partition }) => partition < 0)
  for (const queue of new Set(ofLetters.map((found) => found.queue))) repairLetters(database, queue)
  const ofItems = ofQueues.filter(({ partition }) => partition >= 0)
  const partitions = new Map(ofItems.map((found) => [`${found.queue}/${found.partition}`, found]))
  for (const { queue, partition } of partitions.values()) {
    const id = database.get('select id from queues where name = ?', queue)?.id as number
    const tail = `from items where queue_id = ${id} and partition = ${partition}`
    const ending = `${tail} and state = 1 and lease_deadline < ${instantMax}`
    const parts = Object.values(countColumns).filter((column) => column !== 'accepted')
    database.exec(`
      update counts set
        waiting = (select count(*) ${tail} and state = 0 and available_at is null),
        scheduled = (select count(*) ${tail} and state = 0 and available_at is not null),
        leased = (select count(*) ${tail} and state = 1),
        done = (select count(*) ${tail} and state = 2),
        dead = (select count(*) ${tail} and state = 3),
        discarded = (select count(*) ${tail} and state = 4),
        archived = (select count(*) from archive where queue_id = ${id} and partition = ${partition}),
        created_sum_ms = (select coalesce(sum(created_at / 1000 - ${sumEpochMs}), 0) ${tail}
          and (state = 1 or (state = 0 and available_at is null))),
        lease_sum_ms = (select coalesce(sum(lease_deadline / 1000 - ${sumEpochMs}), 0) ${ending}),
        lease_sum_count = (select count(*) ${ending})
      where queue_id = ${id} and partition = ${partition};
      update counts set accepted = ${parts.join(' + ')} where queue_id = ${id} and partition = ${partition};`)
  }
}

function countsOf(row: Row): Counts {
  const counts: Partial<Record<Count, number>> = {}
  for (const name of countNames) counts[name] = row[countColumns[name]] as number
  return counts as Counts
}

function weighLease(delta: Delta, deadline: number, by: 1 | -1): void {
  if (deadline === instantMax) return
  delta.leaseMs += by * sumMs(deadline)
  delta.leases += by
}

function sumMs(instant: number): number {
  return Math.floor(instant / 1000) - sumEpochMs
}

function meanOf(sum: string, count: number): number | null {
  return count === 0 ? null : Math.round((Number(sum) / count + sumEpochMs) * 1000)
}
