import type { Storage } from '../../../src/storage/contract/storage.ts'
import { noon, second } from '../../make.ts'
import type { StoreFixture } from './test-stores.ts'

export type Worker = Readonly<{ storage: Storage; name: string; now(): number }>

/**
 * Runs workers of two servers on one store. The clocks of the servers differ by seconds.
 */
export async function runOnTwoServers(
  given: StoreFixture,
  work: Readonly<{
    workersEach: number
    stepsEach: number
    /** By how many microseconds a step advances the time. */
    tick(): number
    act(worker: Worker, now: number): Promise<void>
  }>,
  /** Runs after the workers, before the second server is closed. */
  atEnd: (servers: readonly Worker[], time: number) => Promise<void> = async () => {},
): Promise<void> {
  const other = await given.testStore.open()
  let time = noon
  const servers = [
    { storage: given.storage, now: () => time, name: 'a' },
    { storage: other, now: () => time - 7 * second, name: 'b' },
  ]
  await Promise.all(
    servers.flatMap(({ storage, now, name }) =>
      Array.from({ length: work.workersEach }, async (_, worker) => {
        for (let step = 0; step < work.stepsEach; step++) {
          time += work.tick()
          await work.act({ storage, now, name: `${name}${worker}.${step}` }, now())
        }
      }),
    ),
  )
  await atEnd(servers, time)
  await other.close()
}
