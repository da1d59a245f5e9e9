import { Client } from 'pg'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { pollUntil } from '../../http/poll-until.ts'
import type { Report, TestProcess } from '../processes/start-process.ts'
import type { TestStore } from './test-stores.ts'

/** Processes that work on one store, killed one after the other; after each kill the store is looked at. */
export async function killRepeatedly(
  place: TestStore,
  kills: number,
  rounds: Readonly<{
    start(round: number): TestProcess
    /** Waits for the moment of the kill. */
    waitForKill(child: TestProcess): Promise<void>
    /** `lines`: what it said before it was killed. */
    check(storage: Storage, lines: readonly Report[]): Promise<void>
  }>,
): Promise<void> {
  // Started one ahead: a process takes longer to start than a store to open.
  let next = rounds.start(0)
  await using watch = await watchConnections(place)
  try {
    for (let round = 0; round < kills; round++) {
      const child = next
      await child.waitForReport('warm')
      next = rounds.start(round + 1)
      child.send('go')
      await rounds.waitForKill(child)
      const lines = await child.kill()
      await watch.whenDisconnected()
      const storage = await place.open()
      await rounds.check(storage, lines)
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
async function watchConnections({
  target,
}: TestStore): Promise<AsyncDisposable & { whenDisconnected(): Promise<unknown> }> {
  if (target.kind !== 'postgres')
    return { whenDisconnected: async () => {}, [Symbol.asyncDispose]: async () => {} }
  const client = new Client({ connectionString: target.url })
  await client.connect()
  const others = `select count(*)::int4 as n from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
  const countOthers = async (): Promise<number> => (await client.query(others)).rows[0].n
  return {
    whenDisconnected: () => pollUntil(countOthers, (count) => count === 0),
    [Symbol.asyncDispose]: () => client.end(),
  }
}
