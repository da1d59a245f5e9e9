/** Imports captured letters, which arrive encoded from the server's thread (threads/capture-encoding.ts). */
import { type Cause, toCause } from '../../../core/dead-letters/cause.ts'
import { computeFirstRedriveAt } from '../../../core/dead-letters/letter.ts'
import { type CompiledRules, compileRules } from '../../../core/grouping/rules.ts'
import { addDuration, type Instant } from '../../../core/time/instant.ts'
import { decodeFailure, decodeOrigin } from '../../shared/items/item-row.ts'
import { checkTakesLetters, refuseRepeats } from '../../shared/items/queue-checks.ts'
import { countRedrives } from '../../shared/letters/counted-filter.ts'
import { readText } from '../../shared/rows/row-values.ts'
import type { Bound } from '../connection/database.ts'
import { arrivalSql, countArrival, hasSource } from '../items/write-rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import {
  type EncodedImportResults,
  type EncodedLetter,
  type EncodedLetters,
  valuesPerLetter,
} from '../threads/capture-encoding.ts'
import type { Transaction } from '../transaction.ts'

/**
 * Binds only the columns in which new letters differ: fewer values are bound, and null columns cost nothing.
 *
 * `or fail`: an error in the middle of the statement keeps its earlier rows. The write is rolled back as a
 * whole, so SQLite need not copy each page before the statement changes it.
 */
const insertSql = (
  rows: number,
): string => `insert or fail into items (queue_id, partition, id, root_id, source_id, state, attempts,
    attempts_max, priority, kind, encoding, reference, key, headers, created_at, updated_at, expire_deadline, died_at, failure,
    origin, redrives, group_id, letter_state, letter_redrives, redrive_at, history, key_run, payload, arrival)
  values ${Array(rows)
    .fill(
      `(?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ${arrivalSql})`,
    )
    .join(', ')}
  on conflict (queue_id, source_id) where source_id is not null do nothing`
/** Rows in a statement. To open and close nine B-trees for each row costs a tenth of storing it. */
const rowsPerInsert = 25
const insertOne = insertSql(1)
const insertMany = insertSql(rowsPerInsert)
const isStoredSql = 'select 1 from items where queue_id = ? and partition = ? and id = ?'
const findBySourceSql = 'select root_id from items where queue_id = ? and source_id = ?'

type NewRow = Readonly<{
  id: string
  sourceId: string | null
  groupId: number
  retryCount: number
  deadLetteredAt: Instant
  expireDeadline: Instant
  values: readonly Bound[]
}>

/** Writes the same rows and counts as `importItems` does for such letters. */
export function importLetters(transaction: Transaction, letters: EncodedLetters): EncodedImportResults {
  const { queueCache, countChanges } = transaction
  const queueRow = queueCache.getWithPartition(letters.queue, letters.partition)
  checkTakesLetters(queueRow.queue)
  const ids = queueCache.allocateIds(queueRow, letters.partition, letters.now, letters.count, countChanges)
  return new LetterImport(transaction, queueRow, letters).run(ids)
}

class LetterImport {
  readonly #transaction: Transaction
  readonly #queueRow: QueueRow
  readonly #letters: EncodedLetters
  readonly #random: () => number
  readonly #rules: CompiledRules | undefined
  /** By the index of the cause. */
  readonly #groupIds: (number | undefined)[] = []
  readonly #results: (string | number | null)[] = []
  #rows: NewRow[] = []
  #storedCount = 0
  #bytesRead = 0

  constructor(transaction: Transaction, queueRow: QueueRow, letters: EncodedLetters) {
    this.#transaction = transaction
    this.#queueRow = queueRow
    this.#letters = letters
    this.#rules = compileRules(queueRow.queue.groupingRules)
    this.#random = () => transaction.queueCache.random()
  }

  run(ids: readonly string[]): EncodedImportResults {
    const { partition, now, values } = this.#letters
    for (const [index, id] of ids.entries()) {
      const start = index * valuesPerLetter
      this.#add(id, values.slice(start, start + valuesPerLetter) as unknown as EncodedLetter)
      if (this.#rows.length === rowsPerInsert) this.#flush()
    }
    this.#flush()
    const repeated = ids.length - this.#storedCount
    if (this.#letters.isNewOnly) refuseRepeats(this.#letters.queue, repeated)
    const { countChanges } = this.#transaction
    countChanges.add(this.#queueRow.id, partition, 'accepted', this.#storedCount)
    countChanges.addWaiting(this.#queueRow.id, partition, now, this.#storedCount)
    return { createdAt: now, values: this.#results }
  }

  #add(id: string, letter: EncodedLetter): void {
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
      retryCount,
      ,
      keyBytes,
      payloadBytes,
    ] = letter
    const { partition, now } = this.#letters
    const { queue, id: queueId } = this.#queueRow
    const key = keyBytes === null ? null : this.#takeBytes(keyBytes)
    const payload = this.#takeBytes(payloadBytes)
    const expireDeadline = givenDeadline ?? addDuration(now, queue.expireTimeoutUs)
    const deadLetteredAt: Instant = givenDiedAt ?? now
    const groupId = this.#findGroup(letter, payload, deadLetteredAt)
    if (groupId === undefined) {
      this.#reject(sourceId, expireDeadline)
      return
    }
    const values: readonly Bound[] = [
      queueId,
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
      deadLetteredAt,
      failure,
      origin,
      retryCount,
      groupId,
      countRedrives(retryCount),
      computeFirstRedriveAt(now, queue.redrive, this.#random),
      history,
      key && this.#transaction.keyRuns.allocate(),
      payload,
    ]
    this.#rows.push({ id, sourceId, groupId, retryCount, deadLetteredAt, expireDeadline, values })
  }

  /**
   * Undefined: the letter exists already, and no group is created for a letter that is not stored. The rows
   * before it are inserted first, because one of them may have its source id.
   */
  #findGroup(letter: EncodedLetter, payload: Uint8Array, deadLetteredAt: Instant): number | undefined {
    const [sourceId] = letter
    const causeIndex = letter[14]
    if (this.#rules !== undefined) {
      // The server's thread does not know the rules of the queue, so the cause is computed again.
      const origin = decodeOrigin(letter[11]) ?? { name: '' }
      const ruled = toCause(decodeFailure(letter[10]), origin, this.#rules, payload)
      return this.#findByCause(ruled, deadLetteredAt, sourceId)
    }
    const cached = this.#groupIds[causeIndex]
    if (cached !== undefined) return cached
    const cause = this.#letters.causes[causeIndex] as Cause
    const groupId = this.#findByCause(cause, deadLetteredAt, sourceId)
    this.#groupIds[causeIndex] = groupId
    return groupId
  }

  #findByCause(cause: Cause, deadLetteredAt: Instant, sourceId: string | null): number | undefined {
    const isNew = () => {
      this.#flush()
      return !hasSource(this.#transaction, this.#queueRow, sourceId)
    }
    return this.#transaction.groups.findOrCreateByCause(this.#queueRow, cause, deadLetteredAt, isNew)
  }

  #takeBytes(length: number): Uint8Array {
    this.#bytesRead += length
    return this.#letters.bytes.subarray(this.#bytesRead - length, this.#bytesRead)
  }

  #flush(): void {
    const rows = this.#rows
    this.#rows = []
    const areStored = this.#insert(rows)
    const { countChanges } = this.#transaction
    const queueId = this.#queueRow.id
    for (const [
      index,
      { id, sourceId, groupId, retryCount, deadLetteredAt, expireDeadline },
    ] of rows.entries()) {
      if (!areStored[index]) {
        this.#reject(sourceId, expireDeadline)
        continue
      }
      this.#results.push(id, null, expireDeadline)
      countChanges.letters.add(queueId, groupId, 'waiting', retryCount, deadLetteredAt, 1)
      countArrival(this.#transaction, this.#queueRow, groupId, deadLetteredAt)
      this.#storedCount++
    }
  }

  /** For each row, whether it was stored. It is not if its source id is in the queue already. */
  #insert(rows: readonly NewRow[]): boolean[] {
    const { database } = this.#transaction
    if (rows.length < rowsPerInsert) return rows.map(({ values }) => database.run(insertOne, ...values) > 0)
    const stored = database.run(insertMany, ...rows.flatMap(({ values }) => values))
    if (stored === rows.length) return rows.map(() => true)
    const { partition } = this.#letters
    return rows.map(
      ({ id }) => database.getArray(isStoredSql, this.#queueRow.id, partition, id) !== undefined,
    )
  }

  #reject(sourceId: string | null, expireDeadline: Instant): void {
    const existing = this.#transaction.database.getArray(findBySourceSql, this.#queueRow.id, sourceId)
    this.#results.push(null, readText(existing ?? [], 0), expireDeadline)
  }
}
