import { Client } from 'pg'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { pollUntil } from '../http/poll-until.ts'
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
  await using watch = await watchOver(place)
  try {
    for (let round = 0; round < kills; round++) {
      const child = next
      await child.heard('warm')
      next = rounds.start(round + 1)
      child.say('go')
      await rounds.aim(child)
      const lines = await child.kill()
      await watch.whenLeft()
      const storage = await place.open()
      await rounds.look(storage, lines)
      await storage.close()
    }
  } finally {
    await next.kill()
  }
}

/**
 * PostgreSQL may still run statements that a process sent before its death. Waits for them before the test
 * looks.
 */
async function watchOver({ target }: Place): Promise<AsyncDisposable & { whenLeft(): Promise<unknown> }> {
  if (target.kind !== 'postgres') return { whenLeft: async () => {}, [Symbol.asyncDispose]: async () => {} }
  const client = new Client({ connectionString: target.url })
  await client.connect()
  const others = `select count(*)::int4 as n from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
  const countOthers = async (): Promise<number> => (await client.query(others)).rows[0].n
  return {
    whenLeft: () => pollUntil(countOthers, (count) => count === 0),
    [Symbol.asyncDispose]: () => client.end(),
  }
}
