/**
 * Who rests between two steps, so that a campaign takes its share of the time and no more. Others go on
 * meanwhile: only when nobody else has anything to do is a rest waited for.
 */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Rests {
  /** It worked for so long, and rests until that was its share of the time. */
  begin(campaignId: string, workedMs: number): void
  isResting(campaignId: string): boolean
  /** Until somebody may go on, or somebody else may have something to do. Ended by the signal, it does not reject. */
  wait(signal: AbortSignal): Promise<void>
  /** Nobody asks for any other campaign. */
  keepOnly(campaignIds: ReadonlySet<string>): void
}

const restMsMax = 1_000
/** A campaign that waits for its rate is looked at so often: as often as it has a step that is worth it. */
const waitMsMax = 100

export function createRests(share: number, nowMs: () => number = () => performance.now()): Rests {
  const untilMs = new Map<string, number>()
  return {
    begin: (campaignId, workedMs) => {
      untilMs.set(campaignId, nowMs() + Math.min(workedMs * (1 / share - 1), restMsMax))
    },
    isResting: (campaignId) => (untilMs.get(campaignId) ?? 0) > nowMs(),
    wait: async (signal) => {
      const restMs = Math.min(...untilMs.values()) - nowMs()
      // Stopped meanwhile, there is nothing more to wait for.
      await sleep(Math.max(0, Math.min(restMs, waitMsMax)), undefined, { signal }).catch(() => {})
    },
    keepOnly: (campaignIds) => {
      for (const [id, until] of untilMs) {
        if (!campaignIds.has(id) || until <= nowMs()) untilMs.delete(id)
      }
    },
  }
}
