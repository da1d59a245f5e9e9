import { guardedClass } from '../../../core/letter-class.ts'
import type { Counts } from '../../contract/counts.ts'
import type { Clear, Delete } from '../../contract/items.ts'
import { redrivesCounted } from '../../contract/letters.ts'
import type { Results } from '../../contract/storage.ts'
import { queueEntries, removalDetails } from '../../shared/audit-entries.ts'
import { takeStep } from '../../shared/byte-budget.ts'
import { checkOpenLetters } from '../../shared/queue-checks.ts'
import { insertEntries } from '../audit/audit.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { int4s, texts } from '../connection/encode-arrays.ts'
import { endWhatIsGone, goneColumns } from '../letters/redrive-ends.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { isLocatedRow, locateRows } from './locate-rows.ts'
import { stateCodes, stateNames } from './rows.ts'

/** What left, added up in the database: payloads do not travel to be deleted. */
export const sumRemovedSql = `select queue_id, partition, state, group_id, least(redrives, ${redrivesCounted}) as redrives,
    case when group_id is not null then died_at / 60000000 end as minute, count(*)::int4 as n,
    coalesce(sum(created_at / 1000), 0) as created, coalesce(sum(lease_deadline / 1000), 0) as leased
  from gone group by 1, 2, 3, 4, 5, 6`

const returning = `returning t.queue_id, t.partition, t.state, t.created_at, t.lease_deadline, t.group_id, t.redrives,
    t.died_at`
const left = goneColumns.map((name) => `, t.${name}`).join('')

/** In the order of the ids that are given. */
export const lockByIds: Statement = {
  name: 'lock-by-ids',
  text: `select t.id${left} from unnest($3::text[]) as w(id) cross join lateral (
      select f.id, ${goneColumns.map((name) => `f.${name}`).join(', ')} from redrive.items f
      where f.queue_id = $1 and f.partition = $2 and f.id = w.id for update
    ) t`,
}

/** Of rows that are locked. A statement of its own, because it must see them as they were when they were locked. */
export const deleteByIds: Statement = {
  name: 'delete-by-ids',
  text: `with gone as (
      delete from redrive.items t
      using unnest($1::int4[], $2::int4[], $3::text[]) as w(queue_id, partition, id) cross join ${locateRows('w')} p
      where ${isLocatedRow('t', 'p')} ${returning}
    ) ${sumRemovedSql}`,
}

export async function deleteItems(transaction: Transaction, command: Delete): Promise<{ removed: number }> {
  const queueRow = await transaction.getWithPartition(command.queue, command.partition)
  const ids = [...new Set(command.ids)].sort()
  const rows = await transaction.connection.query(lockByIds, [queueRow.id, command.partition, texts(ids)])
  const { removed, details } = await removeLocked(
    transaction,
    queueRow,
    rows.map((row) => ({ ...row, partition: command.partition })),
  )
  const told = { ids: rows.slice(0, idsToldMax).map(({ id }) => id), ...details }
  await insertEntries(transaction.connection, queueEntries(command.trace, command.queue, removed, told))
  return { removed }
}

const idsToldMax = 1_000

/** Each partition gives its lowest ids, in the order of its index; the lowest of all of them go. */
export const lockByState: Statement = {
  name: 'lock-by-state',
  text: `select r.* from unnest($4::int4[]) as p(partition) cross join lateral (
      select t.partition, t.id${left}, octet_length(t.payload) as bytes from redrive.items t
      where t.queue_id = $1 and t.partition = p.partition and t.state = any ($2::int4[])
      order by t.id limit $3 for update of t
    ) r order by r.id limit $3`,
}

export async function clear(transaction: Transaction, command: Clear): Promise<Results['clear']> {
  const queueRow =
    command.partition === undefined
      ? await transaction.get(command.queue)
      : await transaction.getWithPartition(command.queue, command.partition)
  const states = [
    ...(command.isWaiting ? [stateCodes.waiting] : []),
    ...(command.isScheduled ? [stateCodes.scheduled] : []),
    ...(command.isLeased ? [stateCodes.leased] : []),
  ]
  if (states.length === 0) return { removed: 0, isMore: false }
  if (command.isForced !== true) await checkNoGuardedLetters(transaction, queueRow, states)
  const partitions =
    command.partition === undefined
      ? Array.from({ length: queueRow.queue.partitions }, (_, partition) => partition)
      : [command.partition]
  const rows = await transaction.connection.query(lockByState, [
    queueRow.id,
    int4s(states),
    command.countMax,
    int4s(partitions),
  ])
  const { step, isMore } = takeStep(rows, ({ bytes }) => bytes as number, command.countMax)
  const { removed, details } = await removeLocked(transaction, queueRow, step)
  await insertEntries(transaction.connection, queueEntries(command.trace, command.queue, removed, details))
  return { removed, isMore }
}

const countOpen: Statement = {
  text: `select coalesce(sum(c.n), 0)::int8 as n from redrive.letter_sums c
    where c.queue_id = $1 and c.state = any ($2::int4[])`,
}

/** Letters of a class that is guarded are not erased by the way. */
export async function checkNoGuardedLetters(
  transaction: Transaction,
  { id, queue }: QueueRow,
  states: readonly number[],
): Promise<void> {
  if (queue.letterClass !== guardedClass) return
  await transaction.flushLetters()
  const [row] = await transaction.connection.query(countOpen, [id, int4s(states)])
  checkOpenLetters(queue, row?.n as number)
}

async function removeLocked(
  transaction: Transaction,
  queueRow: QueueRow,
  locked: readonly Row[],
): Promise<{ removed: number; details: ReturnType<typeof removalDetails> }> {
  if (locked.length === 0) return { removed: 0, details: {} }
  await endWhatIsGone(transaction, locked, transaction.now())
  const rows = await transaction.connection.query(deleteByIds, [
    int4s(locked.map(() => queueRow.id)),
    int4s(locked.map(({ partition }) => partition as number)),
    texts(locked.map(({ id }) => id as string)),
  ])
  const removed = tallyRemoved(transaction, rows, 'deleted')
  const letters = countLettersByState(rows.filter((row) => row.group_id !== null))
  return { removed, details: removalDetails(removed, letters) }
}

/** Of rows with a state and a number. */
export function countLettersByState(rows: readonly Row[]): Record<string, number> {
  const letters: Record<string, number> = {}
  for (const row of rows) {
    const state = stateNames[row.state as number] ?? 'dead'
    letters[state] = (letters[state] ?? 0) + (row.n as number)
  }
  return letters
}

/** Takes rows of `sumOfGone` off the gauges and adds them to a total. */
export function tallyRemoved(transaction: Transaction, rows: readonly Row[], as: keyof Counts): number {
  let total = 0
  for (const row of rows) {
    const [queueId, partition, n] = [row.queue_id, row.partition, row.n] as [number, number, number]
    const gauge = stateNames[row.state as number] ?? 'dead'
    transaction.tally.add(queueId, partition, gauge, -n)
    transaction.tally.add(queueId, partition, as, n)
    const isWeighed = gauge === 'waiting' || gauge === 'leased'
    const createdMs = isWeighed ? -BigInt(row.created as string) : 0n
    // Imported items may have a lease deadline without being leased.
    const leasedMs = gauge === 'leased' ? -BigInt(row.leased as string) : 0n
    transaction.tally.addSums(queueId, partition, createdMs, leasedMs)
    if (row.group_id !== null) {
      const [groupId, redrives, minute] = [row.group_id, row.redrives, row.minute] as [number, number, number]
      transaction.tally.letters.add(queueId, groupId, row.state as number, redrives, minute, -n)
    }
    total += n
  }
  return total
}
