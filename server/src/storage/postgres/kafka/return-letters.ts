import { endRedrive } from '../../../core/dead-letters/letter.ts'
import { decideReturn, undoRedriveEnd } from '../../../core/kafka/return-letter.ts'
import type { ReturnLetters, ReturnResult } from '../../contract/kafka.ts'
import { createLetterNotFoundError, createRedriveFailedError } from '../../shared/letters/letter-not-found.ts'
import { type ChangedLetter, lockLetters, writeLetters } from '../letters/letter-rows.ts'
import { endLetter } from '../letters/redrive-ends.ts'
import type { Transaction } from '../transaction.ts'
import { forgetReplays } from './replays.ts'

/** Returns letters whose redriven record died again. */
export async function returnLetters(
  transaction: Transaction,
  { returns, now }: ReturnLetters,
): Promise<ReturnResult[]> {
  const letterIds = returns.map(({ letterId }) => letterId)
  const locked = await lockLetters(transaction, letterIds)
  const changed = new Map<string, ChangedLetter>()
  const results = returns.map(({ letterId, number, isGuess = false, failure }): ReturnResult => {
    const found = locked.get(letterId)
    if (found === undefined) throw createLetterNotFoundError(letterId)
    const { queueRow, letter } = found
    const decision = decideReturn(letter, number)
    if (decision === 'ignore' && isGuess) throw createRedriveFailedError(letterId, number)
    if (decision === 'ignore') return { letterId, outcome: 'repeated' }
    const end = { outcome: 'failed', failure, at: now } as const
    const after =
      decision === 'end' && letter.state === 'leased'
        ? endLetter(transaction, queueRow, letter, end)
        : endRedrive(
            undoRedriveEnd(letter, now),
            { ...end, chance: transaction.random() },
            queueRow.queue.redrive,
          )
    locked.set(letterId, { queueRow, letter: after })
    changed.set(letterId, { queueRow, before: changed.get(letterId)?.before ?? letter, after })
    return { letterId, outcome: 'returned' }
  })
  await writeLetters(transaction, [...changed.values()])
  await forgetReplays(transaction, { op: 'forget-kafka-replays', replays: returns })
  return results
}
