import { Client } from 'pg'
import { callersMax, type Drained, loadPeer, type Peer, payload, poolMax, waitUntil } from './peer.ts'

interface Utils {
  migrate(): Promise<void>
  addJob(task: string, payload: object): Promise<unknown>
  addJobs(jobs: readonly { identifier: string; payload: object }[]): Promise<unknown>
  release(): Promise<void>
}
interface Package {
  Logger: new (factory: () => () => void) => object
  makeWorkerUtils(options: object): Promise<Utils>
  run(options: object): Promise<{ stop(): Promise<void>; promise: Promise<void> }>
}

const task = 'bench'

export function createGraphileWorkerPeer(createUrl: () => Promise<string>): Peer {
  return {
    name: 'graphile-worker',
    calls:
      `addJob(); addJobs() of 1000; run() with concurrency ${callersMax} and an empty task: with its defaults ` +
      '(single), or with localQueue.size 1000 and completeJobBatchDelay 0 (batch).',
    open: async (batch) => {
      const { Logger, makeWorkerUtils, run } = await loadPeer<Package>('graphile-worker')
      const connectionString = await createUrl()
      const shared = { connectionString, maxPoolSize: poolMax, logger: new Logger(() => () => {}) }
      const utils = await makeWorkerUtils(shared)
      await utils.migrate()
      const watcher = new Client({ connectionString })
      await watcher.connect()
      const count = async () => {
        const { rows } = await watcher.query(
          'select count(*)::int as count from graphile_worker._private_jobs',
        )
        return rows[0].count as number
      }
      const batching = batch === 1 ? {} : { localQueue: { size: batch }, completeJobBatchDelay: 0 }
      const drain = async (items: number, msMax: number): Promise<Drained> => {
        const before = await count()
        let handled = 0
        const startedAt = performance.now()
        const runner = await run({
          ...shared,
          concurrency: callersMax,
          noHandleSignals: true,
          taskList: {
            [task]: () => {
              handled++
            },
          },
          preset: { worker: batching },
        })
        await waitUntil(() => handled >= items, msMax)
        // A handled job is not completed yet: count the jobs that left the table.
        let left = await count()
        await waitUntil(
          async () => {
            left = await count()
            return before - left >= items
          },
          msMax - (performance.now() - startedAt),
        )
        const seconds = (performance.now() - startedAt) / 1000
        await runner.stop()
        await runner.promise
        return { items: before - left, seconds }
      }
      return {
        produce: async (count) => {
          if (count === 1) await utils.addJob(task, payload)
          else await utils.addJobs(Array.from({ length: count }, () => ({ identifier: task, payload })))
        },
        consume: { kind: 'worker', drain },
        close: async () => {
          await utils.release()
          await watcher.end()
        },
      }
    },
  }
}
