import { createKsuids } from '../../../core/ids/ksuid.ts'
import { addDuration } from '../../../core/time/instant.ts'
import type { Produce, ProduceResult } from '../../contract/items.ts'
import { checkSameItems, digestItems } from '../../shared/items/items-digest.ts'
import { createProducedItem } from '../../shared/items/new-item.ts'
import { toProduceKey } from '../../shared/items/produce-key-row.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts } from '../connection/encode-arrays.ts'
import { addChanges, CountChanges, changeParameterCount } from '../counts/counts.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { StoreContext } from '../store-context.ts'
import type { Transaction } from '../transaction.ts'
import { insertLeaseEnds, type LeasedRow } from './lease-ends.ts'
import {
  type ColumnName,
  columnNames,
  encode,
  getSharedValues,
  insertSql,
  printUnnest,
  printValueParameters,
  type StoredItem,
} from './rows.ts'

/** The columns that a produced item can have. */
const producedColumns = columnNames.filter(
  (name) =>
    !['root_id', 'source_id', 'origin', 'failure', 'died_at', 'ended_at'].includes(name) &&
    !['group_id', 'uuid', 'history', 'letter', 'redrive_at'].includes(name),
)

/** The columns that always differ. Most items of a queue are equal in all other columns. */
const ownColumns = ['id', 'payload'] as const satisfies ColumnName[]
const sharedColumns = producedColumns.filter((name) => !(ownColumns as readonly ColumnName[]).includes(name))

/**
 * One statement that reserves the ids of each partition, if its last id is below the new ids and the version
 * of the queue is the cached one, then stores the items and counts them. If the ids of one partition cannot
 * be reserved, nothing is stored; the reserved ids of the other partitions are then a gap.
 */
function produceWith(
  name: string,
  items: (first: number) => Readonly<{ columns: string; rows: string; width: number }>,
): Statement {
  const { columns, rows, width } = items(6)
  const firstChange = 6 + width
  const slotAt = firstChange + changeParameterCount
  return {
    name,
    text: `with guard as (
      update redrive.partitions p set last_id = g.id_max
      from unnest($1::int4[], $2::int4[], $3::int4[], $4::text[], $5::text[])
          as g(queue_id, version, partition, id_min, id_max)
        join redrive.queues q on q.id = g.queue_id and q.version = g.version
      where p.queue_id = g.queue_id and p.partition = g.partition and p.last_id < g.id_min
      returning 1
    ), reserved as materialized (select count(*) = $${slotAt + 1}::int4 as is_all from guard
    ), stored as (
      insert into redrive.items_live (${columns}, is_sourced) ${rows} where (select is_all from reserved)
    ), counted as (${addChanges(firstChange, slotAt, 'where (select is_all from reserved)')})
    select is_all from reserved`,
    hasRawRows: true,
  }
}

const produceAny = produceWith('produce', (first) => ({
  columns: producedColumns.join(', '),
  rows: `select ${producedColumns.map((name) => `i.${name}`).join(', ')}, false
    from ${printUnnest(producedColumns, 'i', first)}`,
  width: producedColumns.length,
}))

/** For items that are equal in all shared columns: these values are sent once, not in an array. */
const produceAlike = produceWith('produce-alike', (first) => ({
  columns: [...ownColumns, ...sharedColumns].join(', '),
  rows: `select ${ownColumns.map((name) => `i.${name}`).join(', ')},
      ${printValueParameters(sharedColumns, first + ownColumns.length)}, false
    from ${printUnnest(ownColumns, 'i', first)}`,
  width: producedColumns.length,
}))

/** The new ids of one partition. */
type IdRange = { queueRow: QueueRow; partition: number; idMin: string; idMax: string }
type PlacedProduce = Readonly<{ command: Produce; queueRow: QueueRow }>

/**
 * How often the statement is sent. Another server may have reserved later ids since these were chosen: ids of
 * a later time are greater, and a second statement is much cheaper than a transaction that locks first.
 */
const attemptsMax = 2

/** Undefined, with nothing stored, if one statement is not enough. */
export async function tryProduceAlone(
  store: StoreContext,
  commands: readonly Produce[],
): Promise<ProduceResult[] | undefined> {
  if (
    commands.some(({ once, items }) => once !== undefined || items.some(({ lease }) => lease !== undefined))
  )
    return undefined
  const requests = await store.queueCache.getForEach(store.connections, commands)
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    // There is no `await` until the statement is sent, so statements are sent in the order of their ids.
    const prepared = prepareProduces(store, requests, attempt === 1 ? 0 : store.clock.now())
    if (prepared.rows.length === 0) return undefined
    if (await sendProduces(store, prepared)) return prepared.results
  }
  for (const { queueRow } of requests) store.queueCache.invalidate(queueRow.queue.name)
  return undefined
}

type PreparedProduces = Readonly<{
  ranges: ReadonlyMap<string, IdRange>
  countChanges: CountChanges
  rows: readonly StoredItem[]
  results: ProduceResult[]
}>

/** `idsFrom`: the ids are at least of this time. */
function prepareProduces(
  store: StoreContext,
  requests: readonly PlacedProduce[],
  idsFrom: number,
): PreparedProduces {
  const ranges = new Map<string, IdRange>()
  const countChanges = new CountChanges()
  const rows: StoredItem[] = []
  const results: ProduceResult[] = []
  for (const { command, queueRow } of requests) {
    const key = `${queueRow.id}/${command.partition}`
    const range = ranges.get(key)
    const last = range?.idMax ?? store.queueCache.getLastId(queueRow, command.partition)
    const at = Math.max(command.now, idsFrom)
    const ids = createKsuids(last, at, command.items.length, store.random)
    results.push(toResult(command, queueRow, ids))
    const [first, newest] = [ids[0], ids.at(-1)]
    if (first === undefined || newest === undefined) continue
    if (range === undefined) {
      ranges.set(key, { queueRow, partition: command.partition, idMin: first, idMax: newest })
    } else range.idMax = newest
    // Before the statement is answered: the next one can be sent earlier, and needs greater ids.
    store.queueCache.setLastId(queueRow.id, command.partition, newest)
    rows.push(...createRows(countChanges, queueRow, command, ids))
  }
  return { ranges, countChanges, rows, results }
}

/** False: nothing was stored. */
async function sendProduces(
  store: StoreContext,
  { ranges, countChanges, rows }: PreparedProduces,
): Promise<boolean> {
  const reserved = [...ranges.values()].sort(
    (left, right) => left.queueRow.id - right.queueRow.id || left.partition - right.partition,
  )
  const shared = getSharedValues(sharedColumns, rows)
  const [outcome] = await store.connections.writeStatement(shared === undefined ? produceAny : produceAlike, [
    encodeInt4s(reserved.map(({ queueRow }) => queueRow.id)),
    encodeInt4s(reserved.map(({ queueRow }) => queueRow.version)),
    encodeInt4s(reserved.map(({ partition }) => partition)),
    encodeTexts(reserved.map(({ idMin }) => idMin)),
    encodeTexts(reserved.map(({ idMax }) => idMax)),
    ...(shared === undefined ? encode(producedColumns, rows) : [...encode(ownColumns, rows), ...shared]),
    ...countChanges.encode(),
    store.slots.produce,
    reserved.length,
  ])
  return outcome?.[0] === 't'
}

export const insertLive: Statement = { name: 'insert-live', text: insertSql('items_live') }

export async function produce(
  transaction: Transaction,
  commands: readonly Produce[],
): Promise<ProduceResult[]> {
  const rows: StoredItem[] = []
  const results: ProduceResult[] = []
  for (const command of commands) {
    const queueRow = await transaction.getWithPartition(command.queue, command.partition)
    await transaction.lockPartitions([{ queueRow, partition: command.partition }])
    const ids = transaction.allocateIds(queueRow, command.partition, command.now, command.items.length)
    const first =
      command.once && (await insertKey(transaction.connection, queueRow, command, command.once, ids))
    if (first) {
      results.push(first)
      continue
    }
    rows.push(...createRows(transaction.countChanges, queueRow, command, ids))
    results.push(toResult(command, queueRow, ids))
  }
  if (rows.length > 0) await transaction.connection.query(insertLive, encode(columnNames, rows))
  await insertLeaseEnds(transaction.connection, rows.filter(isLeased))
  return results
}

export function isLeased(row: StoredItem): row is StoredItem & LeasedRow {
  return row.item.state === 'leased'
}

function toResult(command: Produce, queueRow: QueueRow, ids: readonly string[]): ProduceResult {
  const deadline = addDuration(command.now, queueRow.queue.leaseTimeoutUs)
  return { ids, partition: command.partition, deadline, isRepeat: false }
}

/**
 * Stores a key, unless a command with the same key is stored and still valid. A second command at the same
 * time waits until the first is committed. Also deletes up to 10 keys that are no longer valid, so that they
 * do not accumulate.
 */
const storeKey: Statement = {
  name: 'store-key',
  text: `with gone as (
      delete from redrive.produce_keys where (queue_id, key) in (
        select queue_id, key from redrive.produce_keys
        where until <= $6 and not (queue_id = $1 and key = $2) order by until limit 10 for update skip locked)
    )
    insert into redrive.produce_keys as k (queue_id, key, partition, ids, until, digest)
      values ($1, $2, $3, $4, $5, $7)
    on conflict (queue_id, key) do update
      set partition = excluded.partition, ids = excluded.ids, until = excluded.until, digest = excluded.digest
      where k.until <= $6
    returning 1`,
}
const findKey: Statement = {
  name: 'find-key',
  text: 'select partition, ids, digest from redrive.produce_keys where queue_id = $1 and key = $2',
}

/** Stores the key. Returns the result of the first command with this key, if there is one. */
async function insertKey(
  connection: Connection,
  queueRow: QueueRow,
  command: Produce,
  { key, until }: NonNullable<Produce['once']>,
  ids: readonly string[],
): Promise<ProduceResult | undefined> {
  const digest = digestItems(command.items)
  const values = [queueRow.id, key, command.partition, JSON.stringify(ids), until, command.now, digest]
  const stored = await connection.query(storeKey, values)
  if (stored.length > 0) return undefined
  const [row = {}] = await connection.query(findKey, [queueRow.id, key])
  const first = toProduceKey(row)
  checkSameItems(command, digest, first.digest)
  return { ...toResult(command, queueRow, first.ids), partition: first.partition, isRepeat: true }
}

/** Also counts the items. */
function createRows(
  countChanges: CountChanges,
  queueRow: QueueRow,
  command: Produce,
  ids: readonly string[],
): StoredItem[] {
  countChanges.add(queueRow.id, command.partition, 'accepted', ids.length)
  return ids.map((id, index) => {
    const item = createProducedItem(command, index, queueRow.queue, id)
    countChanges.enter(queueRow.id, item)
    return { queueId: queueRow.id, queue: queueRow.queue, item }
  })
}
