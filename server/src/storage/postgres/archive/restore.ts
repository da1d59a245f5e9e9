import { restoreLetter } from '../../../core/dead-letters/letter.ts'
import { findRestoreRefusal } from '../../../core/dead-letters/letter-decisions.ts'
import type { RestoreLetters, RestoreResult } from '../../contract/letters.ts'
import { createLetterEntries } from '../../shared/audit/audit-entries.ts'
import { readNumber, readText } from '../../shared/rows/row-values.ts'
import { insertAudit } from '../audit/audit.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { encodeInt4s, encodeTexts, encodeUuids } from '../connection/encode-arrays.ts'
import { StaleReadError } from '../connection/errors.ts'
import {
  columnNames,
  encode,
  headColumns,
  isHeadColumn,
  printArrayParameters,
  readHeadColumns,
  type StoredHead,
  toItemHead,
} from '../items/rows.ts'
import { findBySource } from '../letters/import-letters.ts'
import {
  type ChangedLetter,
  type FoundLetter,
  isKsuid,
  locateMissing,
  lockLetters as lockLive,
  updateRestored,
  writeLetters,
} from '../letters/letter-rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'

const findPartitions: Statement = {
  name: 'find-archived-partitions',
  text: `select t.queue_id, t.partition from unnest($1::uuid[], $2::text[]) as w(uuid, letter_id)
    cross join lateral (
      select f.queue_id, f.partition from redrive.archive f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null offset 0) t`,
}

const lockArchived: Statement = {
  name: 'lock-archived',
  text: `select t.* from (select * from unnest($1::uuid[], $2::text[]) as u(uuid, letter_id) order by u.uuid) w
    cross join lateral (
      select ${readHeadColumns.map((name) => `f.${name}`).join(', ')} from redrive.archive f
      where f.uuid = w.uuid and coalesce(f.root_id, f.id) = w.letter_id and f.origin is not null for update
    ) t`,
}

/** One statement moves the rows with their bytes: exactly the rows that are deleted are inserted. */
const moveRows: Statement = {
  name: 'restore-letters',
  text: `with gone as (
      delete from redrive.archive t
      using unnest(${printArrayParameters(headColumns, 1)}) as m(${headColumns.join(', ')})
        cross join lateral (select f.ctid as location from redrive.archive f where f.uuid = m.uuid offset 0) p
      where t.ctid = p.location
      returning ${columnNames.map((name) => `${isHeadColumn(name) ? 'm' : 't'}.${name}`).join(', ')}
    )
    insert into redrive.items_sourced (${columnNames.join(', ')}, is_sourced)
    select ${columnNames.join(', ')}, true from gone
    on conflict (queue_id, source_id) where source_id is not null do nothing returning id`,
}

export async function restoreLetters(
  transaction: Transaction,
  command: RestoreLetters,
): Promise<RestoreResult[]> {
  const { connection } = transaction
  const archived = await lockLetters(transaction, command.letterIds)
  const others = command.letterIds.filter((letterId) => !archived.has(letterId))
  const live = await restoreLive(transaction, others, command)
  const sources = await findExistingSources(transaction, [...archived.values()])
  const restored: StoredHead[] = []
  const restoredIds = new Set<string>()
  const results = command.letterIds.map((letterId): RestoreResult => {
    const found = archived.get(letterId)
    if (restoredIds.has(letterId)) return { letterId, isRestored: false, refusal: 'not-discarded' }
    if (found === undefined) return live(letterId)
    const { queueRow, letter } = found
    const refusal = findRestoreRefusal(letter, true, command.campaignId)
    if (refusal !== undefined) return { letterId, isRestored: false, refusal }
    const source = letter.sourceId === null ? undefined : toSourceKey(queueRow.id, letter.sourceId)
    if (source !== undefined && sources.has(source)) return { letterId, isRestored: false, refusal: 'taken' }
    if (source !== undefined) sources.add(source)
    restoredIds.add(letterId)
    const item = restoreLetter(letter, command.now, queueRow.queue.redrive)
    restored.push({ queueId: queueRow.id, queue: queueRow.queue, item })
    return { letterId, isRestored: true, refusal: null }
  })
  if (restored.length > 0) await insertRestored(transaction, restored)
  await insertAudit(connection, createLetterEntries(command.audit, results))
  return results
}

async function insertRestored(transaction: Transaction, restored: readonly StoredHead[]): Promise<void> {
  const inserted = await transaction.connection.query(moveRows, encode(headColumns, restored))
  // An item with one of the source ids was stored in the meantime. The next attempt reports it as taken.
  if (inserted.length < restored.length) throw new StaleReadError('a source id')
  for (const { queueId, item } of restored) {
    transaction.countChanges.enter(queueId, item)
    transaction.countChanges.add(queueId, item.partition, 'archived', -1)
  }
}

/**
 * Restores letters that were discarded and not archived yet, and returns the result of each. If a letter was
 * archived since the archive was read, the transaction runs again.
 */
async function restoreLive(
  transaction: Transaction,
  letterIds: readonly string[],
  { now, campaignId }: RestoreLetters,
): Promise<(letterId: string) => RestoreResult> {
  const live = await lockLive(transaction, letterIds)
  const locate = await locateMissing(transaction, letterIds, live)
  const restored: ChangedLetter[] = []
  const results = new Map<string, RestoreResult>()
  for (const [letterId, { queueRow, letter }] of live) {
    const refusal = findRestoreRefusal(letter, false, campaignId)
    results.set(letterId, { letterId, isRestored: refusal === undefined, refusal: refusal ?? null })
    if (refusal !== undefined) continue
    restored.push({ queueRow, before: letter, after: restoreLetter(letter, now, queueRow.queue.redrive) })
  }
  await writeLetters(transaction, restored, updateRestored)
  return (letterId) => {
    const result = results.get(letterId)
    if (result !== undefined) {
      // A letter that is named twice is restored once.
      if (result.isRestored) results.set(letterId, { letterId, isRestored: false, refusal: 'not-discarded' })
      return result
    }
    if (locate(letterId) === 'archived') throw new StaleReadError(`letter ${letterId}`)
    return { letterId, isRestored: false, refusal: 'missing' }
  }
}

/** Locks the partitions first, in the order of all locks (transaction.ts), then the archived letters. */
async function lockLetters(
  transaction: Transaction,
  letterIds: readonly string[],
): Promise<Map<string, FoundLetter>> {
  const ids = [...new Set(letterIds)].filter(isKsuid)
  const values = [encodeUuids(ids), encodeTexts(ids)]
  const partitions = await transaction.connection.query(findPartitions, values)
  const queues = await transaction.getByIds(partitions.map((row) => readNumber(row, 'queue_id')))
  await transaction.lockPartitions(
    partitions.map((row) => ({ queueRow: getQueue(queues, row), partition: readNumber(row, 'partition') })),
  )
  const letters = new Map<string, FoundLetter>()
  if (partitions.length === 0) return letters
  for (const row of await transaction.connection.query(lockArchived, values)) {
    const queueRow = getQueue(queues, row)
    const letter = toItemHead(row, queueRow.queue.name)
    letters.set(letter.rootId, { queueRow, letter })
  }
  return letters
}

function getQueue(queues: ReadonlyMap<number, QueueRow>, row: Row): QueueRow {
  const queueId = readNumber(row, 'queue_id')
  const queueRow = queues.get(queueId)
  if (queueRow === undefined) throw new StaleReadError(`queue ${queueId}`)
  return queueRow
}

/** The source ids of these letters that a live item of the same queue has, as keys of `toSourceKey`. */
async function findExistingSources(
  transaction: Transaction,
  letters: readonly FoundLetter[],
): Promise<Set<string>> {
  const sources = letters.flatMap(({ queueRow, letter }) =>
    letter.sourceId === null ? [] : [{ queueId: queueRow.id, sourceId: letter.sourceId }],
  )
  if (sources.length === 0) return new Set()
  const rows = await transaction.connection.query(findBySource, [
    encodeInt4s(sources.map(({ queueId }) => queueId)),
    encodeTexts(sources.map(({ sourceId }) => sourceId)),
  ])
  return new Set(rows.map((row) => toSourceKey(readNumber(row, 'queue_id'), readText(row, 'source_id'))))
}

function toSourceKey(queueId: number, sourceId: string): string {
  return `${queueId}/${sourceId}`
}
