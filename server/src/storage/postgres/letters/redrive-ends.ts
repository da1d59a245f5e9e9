/** How redrives end: by what became of the item, or because somebody says so. */
import type { Instant } from '../../../core/instant.ts'
import type { Failure, ItemHead, LeasedHead, Outcome } from '../../../core/item.ts'
import { endRedrive, isRedriving, type RedriveEnd } from '../../../core/letter.ts'
import { createUnknownOutcome } from '../../../core/transitions.ts'
import type { EndRedriveResult, EndRedrives } from '../../contract/letters.ts'
import type { Row } from '../connection/connection.ts'
import { stateCodes } from '../items/rows.ts'
import type { QueueRow } from '../queues/queue-cache.ts'
import type { Transaction } from '../transaction.ts'
import { type ChangedLetter, type HeldLetter, holdLetters, writeLetters } from './letter-rows.ts'

/** `number`: of the redrive that ended; null: whichever is under way. */
export type Ending = Readonly<{
  letterId: string
  number: number | null
  outcome: Outcome
  /** Undefined: that nobody knows. */
  failure: Failure | null | undefined
  /** Failures of the item before that one. */
  earlier?: readonly Failure[]
  now: Instant
}>

/** Letters that are locked, as they stand after the endings so far. */
export class Endings {
  readonly #held: Map<string, HeldLetter>
  readonly #changed = new Map<string, ChangedLetter>()
  readonly #transaction: Transaction

  private constructor(transaction: Transaction, held: Map<string, HeldLetter>) {
    this.#transaction = transaction
    this.#held = held
  }

  static async of(transaction: Transaction, letterIds: readonly string[]): Promise<Endings> {
    return new Endings(transaction, await holdLetters(transaction, letterIds))
  }

  /** The letter whose redrive this is, while it is under way. */
  find(letterId: string, number: number | null): HeldLetter | undefined {
    const held = this.#held.get(letterId)
    if (held === undefined || !isRedriving(held.letter)) return undefined
    const current = held.letter.letter?.redrives[0]?.number
    return number === null || number === current ? held : undefined
  }

  /** What the letter is now; undefined when that redrive was not under way. */
  end({ letterId, number, outcome, failure, earlier = [], now }: Ending): ItemHead | undefined {
    const held = this.find(letterId, number)
    if (held === undefined) return undefined
    const item = held.letter as LeasedHead
    const told = failure === undefined ? createUnknownOutcome(item, now) : failure
    const after = endOf(this.#transaction, held.queueRow, item, { outcome, failure: told, earlier, at: now })
    this.#held.set(letterId, { queueRow: held.queueRow, letter: after })
    const before = this.#changed.get(letterId)?.before ?? item
    this.#changed.set(letterId, { queueRow: held.queueRow, before, after })
    return after
  }

  async write(): Promise<void> {
    await writeLetters(this.#transaction, [...this.#changed.values()])
  }
}

/** Also tells the campaign that sent it. */
export function endOf(
  transaction: Transaction,
  queueRow: QueueRow,
  item: LeasedHead,
  end: Omit<RedriveEnd, 'chance'>,
): ItemHead {
  transaction.campaigns.move(item.letter?.redrives[0]?.campaign, 'sent', end.outcome, '', end.at)
  return endRedrive(item, { ...end, chance: transaction.random() }, queueRow.queue.redrive)
}

export async function endRedrives(
  transaction: Transaction,
  commands: readonly EndRedrives[],
): Promise<EndRedriveResult[][]> {
  const ids = commands.flatMap(({ ends }) => ends.map(({ letterId }) => letterId))
  const endings = await Endings.of(transaction, ids)
  const results = commands.map(({ ends, now }) =>
    ends.map((end): EndRedriveResult => {
      const after = endings.end({ ...end, number: null, now })
      return { letterId: end.letterId, state: after?.state ?? null }
    }),
  )
  await endings.write()
  return results
}

/** The columns that say what a row that goes away leaves behind, see `endWhatIsGone`. */
export const goneColumns = ['letter_id', 'redrives', 'state', 'letter'] as const

/**
 * Items went that were redrives: what became of them is unknown. And letters went that were under way: so it is
 * for the campaigns that sent them.
 */
export async function endWhatIsGone(
  transaction: Transaction,
  rows: readonly Row[],
  now: Instant,
): Promise<void> {
  const ended = rows.filter((row) => row.letter_id !== null && (row.state as number) <= stateCodes.leased)
  if (ended.length > 0) {
    const endings = await Endings.of(
      transaction,
      ended.map((row) => row.letter_id as string),
    )
    for (const row of ended) {
      const [letterId, number] = [row.letter_id as string, row.redrives as number]
      endings.end({ letterId, number, outcome: 'unknown', failure: undefined, now })
    }
    await endings.write()
  }
  for (const { letter, state } of rows) {
    if (letter === null || state !== stateCodes.leased) continue
    const [record] = (JSON.parse(letter as string) as NonNullable<ItemHead['letter']>).redrives
    if (record?.outcome === null) transaction.campaigns.move(record.campaign, 'sent', 'unknown', '', now)
  }
}
