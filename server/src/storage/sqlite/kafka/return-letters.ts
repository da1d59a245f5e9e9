import { endRedrive } from '../../../core/dead-letters/letter.ts'
import { decideReturn, undoRedriveEnd } from '../../../core/kafka/return-letter.ts'
import type { ReturnLetters, ReturnResult } from '../../contract/kafka.ts'
import { createLetterNotFoundError, createRedriveFailedError } from '../../shared/letters/letter-not-found.ts'
import { rewriteRow } from '../items/write-rows.ts'
import { findLetter } from '../letters/letter-rows.ts'
import { endLetter } from '../letters/redrive-ends.ts'
import type { Transaction } from '../transaction.ts'
import { forgetReplays } from './replays.ts'

/** Returns letters whose redriven record died again. */
export function returnLetters(transaction: Transaction, command: ReturnLetters): ReturnResult[] {
  const { returns, now } = command
  return returns.map(({ letterId, number, isGuess = false, failure }): ReturnResult => {
    const found = findLetter(transaction, letterId)
    if (found === undefined) throw createLetterNotFoundError(letterId)
    const { queueRow, letter } = found
    const decision = decideReturn(letter, number)
    forgetReplays(transaction, { op: 'forget-kafka-replays', replays: [{ letterId, number }] })
    if (decision === 'ignore' && isGuess) throw createRedriveFailedError(letterId, number)
    if (decision === 'ignore') return { letterId, outcome: 'repeated' }
    const end = { outcome: 'failed', failure, at: now } as const
    if (decision === 'end' && letter.state === 'leased') endLetter(transaction, queueRow, letter, end)
    else {
      const chance = transaction.queueCache.random()
      const after = endRedrive(undoRedriveEnd(letter, now), { ...end, chance }, queueRow.queue.redrive)
      rewriteRow(transaction, queueRow, letter, after)
    }
    return { letterId, outcome: 'returned' }
  })
}
