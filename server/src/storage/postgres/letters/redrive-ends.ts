/**
 * Ends the redrives of letters: their item completed, died again or was deleted, or a command reports the
 * outcome. The letter, and its state in the campaign that sent it, change in the transaction that ends the
 * redrive.
 */

import { endRedrive, isRedriving, type RedriveEnd } from '../../../core/dead-letters/letter.ts'
import type { Failure, ItemHead, LeasedHead, SentOutcome } from '../../../core/items/item.ts'
import { createUnknownOutcome } from '../../../core/items/transitions.ts'
import type { Instant } from '../../../core/time/instant.ts'
import type { EndRedriveResult, EndRedrives } from '../../contract/letters.ts'
import { decodeFacts } from '../../shared/items/item-row.ts'
import { readNumber, readTextOrNull } from '../../shared/rows/row-values.ts'
import type { Row } from '../connection/connection.ts'
import { stateCodes } from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { type ChangedLetter, type FoundLetter, lockLetters, writeLetters } from './letter-rows.ts'

/** `number`: of the redrive that ended; null: the redrive in progress, whatever its number. */
export type EndedRedrive = Readonly<{
  letterId: string
  number: number | null
  outcome: SentOutcome
  /** Undefined: the failure of a redrive whose outcome is unknown. */
  failure: Failure | null | undefined
  /** The failures of the item before `failure`. */
  earlier?: readonly Failure[]
  target?: RedriveEnd['target']
  now: Instant
}>

/** Locks letters, ends their redrives in memory, and writes each letter once. */
export class RedriveEndings {
  /** As they are after the endings so far. */
  readonly #letters: Map<string, FoundLetter>
  readonly #changed = new Map<string, ChangedLetter>()
  readonly #transaction: Transaction

  private constructor(transaction: Transaction, letters: Map<string, FoundLetter>) {
    this.#transaction = transaction
    this.#letters = letters
  }

  static async lock(transaction: Transaction, letterIds: readonly string[]): Promise<RedriveEndings> {
    return new RedriveEndings(transaction, await lockLetters(transaction, letterIds))
  }

  /** The letter, if its redrive with this number is in progress. */
  find(letterId: string, number: number | null): FoundLetter | undefined {
    const found = this.#letters.get(letterId)
    if (found === undefined || !isRedriving(found.letter)) return undefined
    const current = found.letter.letter?.redrives[0]?.number
    return number === null || number === current ? found : undefined
  }

  /** Returns the letter after the end; undefined if that redrive is not in progress. */
  end({ letterId, number, outcome, failure, earlier = [], target, now }: EndedRedrive): ItemHead | undefined {
    const found = this.find(letterId, number)
    if (found === undefined) return undefined
    const { queueRow } = found
    const letter = found.letter as LeasedHead
    const recorded = failure === undefined ? createUnknownOutcome(letter, now) : failure
    const end = { outcome, failure: recorded, earlier, target, at: now }
    const after = endLetter(this.#transaction, queueRow, letter, end)
    this.#letters.set(letterId, { queueRow, letter: after })
    const before = this.#changed.get(letterId)?.before ?? letter
    this.#changed.set(letterId, { queueRow, before, after })
    return after
  }

  async write(): Promise<void> {
    await writeLetters(this.#transaction, [...this.#changed.values()])
  }
}

/** Also ends the letter in the campaign that sent it. The caller writes the letter. */
export function endLetter(
  transaction: Transaction,
  queueRow: QueueRow,
  letter: LeasedHead,
  end: Omit<RedriveEnd, 'chance'>,
): ItemHead {
  transaction.campaigns.move(letter.letter?.redrives[0]?.campaign, 'sent', end.outcome, '', end.at)
  return endRedrive(letter, { ...end, chance: transaction.random() }, queueRow.queue.redrive)
}

export async function endRedrives(
  transaction: Transaction,
  commands: readonly EndRedrives[],
): Promise<EndRedriveResult[][]> {
  const ids = commands.flatMap(({ ends }) => ends.map(({ letterId }) => letterId))
  const endings = await RedriveEndings.lock(transaction, ids)
  const results = commands.map(({ ends, now }) =>
    ends.map((end): EndRedriveResult => {
      const after = endings.end({ number: null, ...end, now })
      return { letterId: end.letterId, state: after?.state ?? null }
    }),
  )
  await endings.write()
  return results
}

/** The columns of deleted rows that `endDeletedRows` needs. */
export const deletedColumns = ['letter_id', 'redrives', 'state', 'letter'] as const

/**
 * Ends the redrives of items that were deleted with an unknown outcome, and ends letters that were deleted
 * during a redrive in the campaigns that sent them.
 */
export async function endDeletedRows(
  transaction: Transaction,
  rows: readonly Row[],
  now: Instant,
): Promise<void> {
  await endDeletedItems(transaction, rows, now)
  for (const row of rows) {
    const letter = readTextOrNull(row, 'letter')
    if (letter === null || readNumber(row, 'state') !== stateCodes.leased) continue
    const [record] = decodeFacts(letter, null).redrives
    if (record?.outcome === null) transaction.campaigns.move(record.campaign, 'sent', 'unknown', '', now)
  }
}

async function endDeletedItems(transaction: Transaction, rows: readonly Row[], now: Instant): Promise<void> {
  const redriven = rows.flatMap((row) => {
    const letterId = readTextOrNull(row, 'letter_id')
    const isEnded = letterId === null || readNumber(row, 'state') > stateCodes.leased
    return isEnded ? [] : [{ letterId, number: readNumber(row, 'redrives') }]
  })
  if (redriven.length === 0) return
  const endings = await RedriveEndings.lock(
    transaction,
    redriven.map(({ letterId }) => letterId),
  )
  for (const each of redriven) endings.end({ ...each, outcome: 'unknown', failure: undefined, now })
  await endings.write()
}
