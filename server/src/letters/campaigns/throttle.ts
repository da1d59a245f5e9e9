/**
 * Pauses campaigns between two steps, so that each uses no more than its share of the time. Other campaigns
 * continue during a pause; the runner waits only if all of them are paused or idle.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { CampaignId } from '../../core/ids/ids.ts'

export interface Throttle {
  /** Starts a pause after `workedMs` of work, long enough that the work was `share` of the time. */
  pause(campaignId: CampaignId, workedMs: number): void
  isPaused(campaignId: CampaignId): boolean
  /** Waits until the next pause ends, at most 100 ms. Resolves early if the signal aborts; never rejects. */
  wait(signal: AbortSignal): Promise<void>
  /** Forgets all other campaigns. */
  keepOnly(campaignIds: ReadonlySet<CampaignId>): void
}

const restMsMax = 1_000
/** Maximum wait, so that campaigns that wait for their rate are checked as often as they send. */
const waitMsMax = 100

export function createThrottle(share: number, nowMs: () => number = () => performance.now()): Throttle {
  const untilMs = new Map<string, number>()
  return {
    pause: (campaignId, workedMs) => {
      untilMs.set(campaignId, nowMs() + Math.min(workedMs * (1 / share - 1), restMsMax))
    },
    isPaused: (campaignId) => (untilMs.get(campaignId) ?? 0) > nowMs(),
    wait: async (signal) => {
      const restMs = Math.min(...untilMs.values()) - nowMs()
      // An abort rejects the sleep: the server stops, and the caller continues immediately.
      await sleep(Math.max(0, Math.min(restMs, waitMsMax)), undefined, { signal }).catch(() => {})
    },
    keepOnly: (campaignIds) => {
      for (const [id, until] of untilMs) {
        if (!campaignIds.has(id) || until <= nowMs()) untilMs.delete(id)
      }
    },
  }
}
