import type { Clock, Instant } from '../core/time/instant.ts'
import type { Engine } from '../engine/engine.ts'

/** Collects when keys were used, and records the newest use of each key in one write per pass. */
export interface KeyUses {
  note(keyId: string): void
  pass(): Promise<void>
}

/** Uses that could not be written are kept for the next pass, but not without a limit. */
const keysMax = 20_000
const keysPerWrite = 1_000

export function createKeyUses(engine: Pick<Engine, 'write'>, clock: Clock): KeyUses {
  const uses = new Map<string, Instant>()
  return {
    note: (keyId) => {
      if (uses.size < keysMax || uses.has(keyId)) uses.set(keyId, clock.now())
    },
    pass: async () => {
      const taken = [...uses]
      for (let at = 0; at < taken.length; at += keysPerWrite) {
        const step = taken.slice(at, at + keysPerWrite)
        await engine.write([{ op: 'record-key-uses', uses: step.map(([keyId, at]) => ({ keyId, at })) }])
        // A key that was used again during the write stays for the next pass.
        for (const [keyId, at] of step) if (uses.get(keyId) === at) uses.delete(keyId)
      }
    },
  }
}
