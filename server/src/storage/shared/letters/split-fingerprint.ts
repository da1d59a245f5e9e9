/** The fingerprints of the groups of a split. Letters of each split group keep their code and class. */
import { createHash } from 'node:crypto'

/**
 * `member`: the fingerprint of the group that the letters come from; empty: the group that shows them all.
 */
export function toSplitFingerprint(splitId: string, member = ''): string {
  return createHash('sha256').update(`split\u0000${splitId}\u0000${member}`).digest('hex').slice(0, 16)
}

/**
 * Arrivals of the last days move with a letter that was never redriven. Older hours may be deleted already.
 */
export function isArrivalMoved(
  letter: Readonly<{ retryCount: number; deadLetteredAt: number | null }>,
  now: number,
): boolean {
  const daysKept = 6
  const at = letter.deadLetteredAt ?? 0
  return letter.retryCount === 0 && at <= now && at > now - daysKept * 24 * 3_600 * 1_000_000
}
