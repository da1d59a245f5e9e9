import type { Cause } from '../../../core/cause.ts'
import { type Instant, later } from '../../../core/instant.ts'
import { firstRedriveAt } from '../../../core/letter.ts'
import { countRedrives } from '../../shared/counted-filter.ts'
import { checkTakesLetters } from '../../shared/queue-checks.ts'
import type { Bound } from '../connection/database.ts'
import { countArrival, hasSource } from '../items/write-rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { EncodedImportResults, EncodedLetter, EncodedLetters } from '../threads/capture-encoding.ts'
import { valuesPerLetter } from '../threads/capture-encoding.ts'
import type { Transaction } from '../transaction.ts'

/**
 * All that is the same in every letter that is new stands in the statement: less is bound, and what is null costs nothing.
 *
 * `or fail`: what would end the statement in its middle ends the write, which is undone as a whole. So SQLite need not keep
 * each page as it was before the statement.
 */
const insertSql = (
  rows: number,
): string => `insert or fail into items (queue_id, partition, id, root_id, source_id, state, attempts,
    attempts_max, priority, kind, encoding, reference, key, headers, created_at, updated_at, expire_deadline, died_at, failure,
    origin, redrives, group_id, letter_state, letter_redrives, redrive_at, history, key_run, payload)
  values ${Array(rows)
    .fill('(?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?)')
    .join(', ')}
  on conflict (queue_id, source_id) where source_id is not null do nothing`
/** Letters in a statement: to open nine trees for each letter, and close them, costs a tenth of storing it. */
const rowsAtOnce = 25
const insertOne = insertSql(1)
const insertMany = insertSql(rowsAtOnce)
const isHereSql = 'select 1 from items where queue_id = ? and partition = ? and id = ?'
const thereSql = 'select root_id from items where queue_id = ? and source_id = ?'

type Row = Readonly<{
  id: string
  sourceId: string | null
  groupId: number
  redrives: number
  diedAt: Instant
  expireDeadline: Instant
  values: readonly Bound[]
}>

/** `importItems` for letters that are new: the same rows, the same counts. */
export function importLetters(transaction: Transaction, sent: EncodedLetters): EncodedImportResults {
  const { database, queueCache, groups, keyRuns, tally } = transaction
  const { partition, now, causes } = sent
  const queueRow = queueCache.getWithPartition(sent.queue, partition)
  checkTakesLetters(queueRow.queue)
  const ids = queueCache.nextIds(queueRow, partition, now, sent.count, tally)
  const random = () => queueCache.random()
  const groupIds: (number | undefined)[] = []
  const answer: (string | number | null)[] = []
  let stored = 0
  const refuse = (sourceId: string | null, expireDeadline: Instant): void => {
    const there = database.array(thereSql, queueRow.id, sourceId)
    answer.push(null, there?.[0] as string, expireDeadline)
  }
  let rows: Row[] = []
  const store = (): void => {
    const areStored = insertRows(transaction, queueRow, partition, rows)
    for (const [index, { id, sourceId, groupId, redrives, diedAt, expireDeadline }] of rows.entries()) {
      if (!areStored[index]) {
        refuse(sourceId, expireDeadline)
        continue
      }
      answer.push(id, null, expireDeadline)
      tally.letters.change(queueRow.id, groupId, 'waiting', redrives, diedAt, 1)
      countArrival(transaction, queueRow, groupId, diedAt)
      stored++
    }
    rows = []
  }
  let bytesAt = 0
  const takeBytes = (length: number): Uint8Array => {
    bytesAt += length
    return sent.bytes.subarray(bytesAt - length, bytesAt)
  }
  for (const [index, id] of ids.entries()) {
    const [
      sourceId,
      attempts,
      attemptsMax,
      priority,
      kind,
      encoding,
      reference,
      headers,
      givenDeadline,
      givenDiedAt,
      failure,
      origin,
      history,
      redrives,
      causeAt,
      keyBytes,
      payloadBytes,
    ] = sent.values.slice(index * valuesPerLetter, (index + 1) * valuesPerLetter) as unknown as EncodedLetter
    const key = keyBytes === null ? null : takeBytes(keyBytes)
    const payload = takeBytes(payloadBytes)
    const expireDeadline = givenDeadline ?? later(now, queueRow.queue.expireUs)
    const diedAt: Instant = givenDiedAt ?? now
    // A group is not made for a letter that is not kept: also not when another of these has its source id.
    groupIds[causeAt] ??= groups.findOrCreateByCause(queueRow, causes[causeAt] as Cause, diedAt, () => {
      store()
      return !hasSource(transaction, queueRow, sourceId)
    })
    const groupId = groupIds[causeAt]
    if (groupId === undefined) {
      refuse(sourceId, expireDeadline)
      continue
    }
    const values: readonly Bound[] = [
      queueRow.id,
      partition,
      id,
      id,
      sourceId,
      attempts,
      attemptsMax,
      priority,
      kind,
      encoding,
      reference,
      key,
      headers,
      now,
      now,
      expireDeadline,
      diedAt,
      failure,
      origin,
      redrives,
      groupId,
      countRedrives(redrives),
      firstRedriveAt(now, queueRow.queue.redrive, random),
      history,
      key && keyRuns.next(),
      payload,
    ]
    rows.push({ id, sourceId, groupId, redrives, diedAt, expireDeadline, values })
    if (rows.length === rowsAtOnce) store()
  }
  store()
  tally.add(queueRow.id, partition, 'accepted', stored)
  tally.addWaiting(queueRow.id, partition, now, stored)
  return { createdAt: now, values: answer }
}

/** For each, whether it is stored: not where its source id is in the queue already. */
function insertRows(
  { database }: Transaction,
  queueRow: QueueRow,
  partition: number,
  rows: readonly Row[],
): boolean[] {
  if (rows.length < rowsAtOnce) return rows.map(({ values }) => database.run(insertOne, ...values) > 0)
  const stored = database.run(insertMany, ...rows.flatMap(({ values }) => values))
  if (stored === rows.length) return rows.map(() => true)
  return rows.map(({ id }) => database.array(isHereSql, queueRow.id, partition, id) !== undefined)
}
