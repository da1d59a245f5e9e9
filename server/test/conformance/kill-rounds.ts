import type { Storage } from '../../src/storage/storage.ts'
import type { Child, Line } from './children/start.ts'
import type { Place } from './stores.ts'

/** Processes that work on one store, killed one after the other; after each kill the store is looked at. */
export async function killAgainAndAgain(
  place: Place,
  kills: number,
  rounds: Readonly<{
    start(round: number): Child
    /** Waits for the moment of the kill. */
    aim(child: Child): Promise<void>
    /** `lines`: what it said before it was killed. */
    look(storage: Storage, lines: readonly Line[]): Promise<void>
  }>,
): Promise<void> {
  // Started one ahead: a process takes longer to start than a store to open.
  let next = rounds.start(0)
  try {
    for (let round = 0; round < kills; round++) {
      const child = next
      await child.heard('warm')
      next = rounds.start(round + 1)
      child.say('go')
      await rounds.aim(child)
      const lines = await child.kill()
      const storage = await place.open()
      await rounds.look(storage, lines)
      await storage.close()
    }
  } finally {
    await next.kill()
  }
}
