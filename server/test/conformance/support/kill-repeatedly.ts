import type { Storage } from '../../../src/storage/contract/storage.ts'
import { createPgClient } from '../../../src/storage/postgres/connection/tls-connection.ts'
import { pollUntil } from '../../http/poll-until.ts'
import type { Report, TestProcess } from '../processes/start-process.ts'
import type { TestStore } from './test-stores.ts'

/** Starts processes on one store, kills one after the other, and checks the store after each kill. */
export async function killRepeatedly(
  testStore: TestStore,
  kills: number,
  rounds: Readonly<{
    start(round: number): TestProcess
    /** Waits for the moment of the kill. */
    waitForKill(child: TestProcess): Promise<void>
    /** `reports`: the reports of the process before it was killed. */
    check(storage: Storage, reports: readonly Report[]): Promise<void>
  }>,
): Promise<void> {
  // The next process starts early, because its start takes longer than opening the store.
  let next = rounds.start(0)
  await using watch = await watchConnections(testStore)
  try {
    for (let round = 0; round < kills; round++) {
      const child = next
      await child.waitForReport('warm')
      next = rounds.start(round + 1)
      child.send('go')
      await rounds.waitForKill(child)
      const reports = await child.kill()
      await watch.whenDisconnected()
      const storage = await testStore.open()
      await rounds.check(storage, reports)
      await storage.close()
    }
  } finally {
    await next.kill()
  }
}

/**
 * PostgreSQL may still run statements that a process sent before it was killed. The test waits until they
 * have ended.
 */
async function watchConnections({
  target,
}: TestStore): Promise<AsyncDisposable & { whenDisconnected(): Promise<unknown> }> {
  if (target.kind !== 'postgres')
    return { whenDisconnected: async () => {}, [Symbol.asyncDispose]: async () => {} }
  const client = createPgClient(target.url)
  await client.connect()
  const others = `select count(*)::int4 as n from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
  const countOthers = async (): Promise<number> => (await client.query(others)).rows[0].n
  return {
    whenDisconnected: () => pollUntil(countOthers, (count) => count === 0),
    [Symbol.asyncDispose]: () => client.end(),
  }
}
