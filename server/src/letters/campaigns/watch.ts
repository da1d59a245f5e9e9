import { setTimeout as sleep } from 'node:timers/promises'
import { KnownError } from '../../errors.ts'
import type { Campaign } from '../letters.ts'

/** What this server changes is seen at once; outcomes, and what others change, by looking. */
const lookMs = 1_000

export interface Changes {
  tell(id: string): void
  /** Resolves at the next change of it here, or after the time to look again. Never rejects. */
  next(id: string, signal: AbortSignal): Promise<void>
}

export function createChanges(): Changes {
  const waiting = new Map<string, Set<() => void>>()
  return {
    tell: (id) => {
      for (const wake of waiting.get(id) ?? []) wake()
    },
    next: async (id, signal) => {
      const woken = new AbortController()
      const wake = () => woken.abort()
      const wakes = waiting.get(id) ?? new Set()
      waiting.set(id, wakes.add(wake))
      // Aborted by a change or by the caller: either way it is time to look.
      await sleep(lookMs, undefined, { signal: AbortSignal.any([signal, woken.signal]), ref: false }).catch(
        () => {},
      )
      wakes.delete(wake)
      if (wakes.size === 0) waiting.delete(id)
    },
  }
}

/**
 * The present state, then each that differs from the one before, until it has ended or is gone. While the store is away
 * nothing is told, and it is asked again: whoever watches has begun to, and would only come back for the same.
 */
export async function* watchCampaign(
  get: () => Promise<Campaign | null>,
  next: () => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<Campaign> {
  let shown = ''
  for (;;) {
    if (signal.aborted) return
    // Asked for before looking: a change in between must not be slept over.
    const changed = next()
    const campaign = await get().catch(undefinedWhenAway)
    if (campaign === null) return
    if (campaign === undefined) {
      await changed
      continue
    }
    const text = JSON.stringify(campaign)
    if (text !== shown) yield campaign
    shown = text
    if (campaign.endedAt !== null) return
    await changed
  }
}

/** Whatever is wrong with the store may be mended from outside; all else is a defect. */
function undefinedWhenAway(error: unknown): undefined {
  if (error instanceof KnownError && error.code.startsWith('STORE_')) return undefined
  throw error
}
