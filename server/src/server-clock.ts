import { type AdjustableClock, createAdjustableClock } from './adjustable-clock.ts'
import type { Clock } from './core/time/instant.ts'
import { createSteadyClock } from './steady-clock.ts'
import type { StoreClock } from './storage/contract/storage.ts'

/** The only source of time of a server: the clock of its machine, then the clock of its store. */
export interface ServerClock extends AdjustableClock {
  readonly machine: Clock
  /** Goes by the clock of the store from now on. */
  follow(storeClock: StoreClock): void
  /** As `StoreClock.machineOffsetUs`; undefined while the server does not follow a store. */
  machineOffsetUs(): number | null | undefined
}

export function createServerClock(machine: Clock): ServerClock {
  let storeClock: StoreClock | undefined
  const steady = createSteadyClock({ now: () => (storeClock ?? machine).now() })
  return {
    ...createAdjustableClock(steady),
    machine,
    follow: (clock) => {
      storeClock = clock
    },
    machineOffsetUs: () => storeClock?.readMachineOffsetUs(),
  }
}
