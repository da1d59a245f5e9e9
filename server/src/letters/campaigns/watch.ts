import { setTimeout as sleep } from 'node:timers/promises'
import type { CampaignId } from '../../core/ids/ids.ts'
import { KnownError } from '../../errors.ts'
import type { Campaign } from '../letters.ts'

/**
 * CampaignChangeSignal made by this server are seen immediately; outcomes and changes by other servers by
 * polling.
 */
const pollMs = 1_000

export interface CampaignChangeSignal {
  notify(id: CampaignId): void
  /** Resolves at the next change on this server, or after the polling interval. Never rejects. */
  waitForNext(id: CampaignId, signal: AbortSignal): Promise<void>
}

export function createChanges(): CampaignChangeSignal {
  const waiting = new Map<string, Set<() => void>>()
  return {
    notify: (id) => {
      for (const wake of waiting.get(id) ?? []) wake()
    },
    waitForNext: async (id, signal) => {
      const woken = new AbortController()
      const wake = () => woken.abort()
      const wakes = waiting.get(id) ?? new Set()
      waiting.set(id, wakes.add(wake))
      // A change or the caller aborted the sleep: in both cases, look again.
      await sleep(pollMs, undefined, { signal: AbortSignal.any([signal, woken.signal]), ref: false }).catch(
        () => {},
      )
      wakes.delete(wake)
      if (wakes.size === 0) waiting.delete(id)
    },
  }
}

/**
 * Yields the current state, then each state that differs from the previous one, until the campaign has ended
 * or is gone. Keeps polling while the store is down; closing the stream would only make the client reconnect.
 */
export async function* watchCampaign(
  get: () => Promise<Campaign | null>,
  next: () => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<Campaign> {
  let shown = ''
  for (;;) {
    if (signal.aborted) return
    // Subscribe before reading, so that a change in between is not missed.
    const changed = next()
    const campaign = await get().catch(ignoreStoreErrors)
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

/** An operator can repair a store that is unavailable, so keep waiting. Any other error is a defect. */
function ignoreStoreErrors(error: unknown): undefined {
  if (error instanceof KnownError && error.code.startsWith('STORE_')) return undefined
  throw error
}
