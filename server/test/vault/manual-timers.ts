import type { Timers } from '../../src/config/secrets/timers.ts'

export interface ManualTimers extends Timers {
  /** Advances the clock: runs the timers that become due, each at its time, and waits for their work. */
  advance(ms: number): Promise<void>
  /** The milliseconds until the next timer is due. */
  nextInMs(): number | undefined
}

export function createManualTimers(): ManualTimers {
  type Entry = Readonly<{ atMs: number; run: () => Promise<void> }>
  const entries = new Set<Entry>()
  let nowMs = 1_000_000

  const next = (): Entry | undefined => [...entries].sort((one, other) => one.atMs - other.atMs)[0]

  return {
    nowMs: () => nowMs,
    schedule: (waitMs, run) => {
      const entry = { atMs: nowMs + waitMs, run }
      entries.add(entry)
      return () => entries.delete(entry)
    },
    advance: async (ms) => {
      const untilMs = nowMs + ms
      for (let entry = next(); entry !== undefined && entry.atMs <= untilMs; entry = next()) {
        nowMs = Math.max(nowMs, entry.atMs)
        entries.delete(entry)
        await entry.run()
      }
      nowMs = untilMs
    },
    nextInMs: () => {
      const entry = next()
      return entry && entry.atMs - nowMs
    },
  }
}
