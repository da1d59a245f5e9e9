import { type Consume, loadPeer, type Peer, payload, poolMax } from './peer.ts'

interface Boss {
  on(event: 'error', listener: (error: unknown) => void): void
  start(): Promise<unknown>
  stop(options: { graceful: boolean; wait: boolean }): Promise<void>
  createQueue(name: string): Promise<void>
  send(name: string, data: object): Promise<string | null>
  insert(jobs: readonly { name: string; data: object }[]): Promise<unknown>
  fetch(name: string, options: { batchSize: number }): Promise<readonly { id: string }[]>
  complete(name: string, ids: readonly string[]): Promise<unknown>
}
type Package = { default: new (options: object) => Boss }

const queue = 'bench'

export function createPgBossPeer(createUrl: () => Promise<string>): Peer {
  return {
    name: 'pg-boss',
    calls:
      'send(); insert() of 1000; fetch() and complete(), of one or of 1000. Maintenance and schedules off. ' +
      'Single fetches by 256 callers contend for the same rows: also measured with 2 callers, and the better rate counts.',
    open: async (batch) => {
      const { default: PgBoss } = await loadPeer<Package>('pg-boss')
      const boss = new PgBoss({
        connectionString: await createUrl(),
        max: poolMax,
        supervise: false,
        schedule: false,
      })
      boss.on('error', (error) => console.error('pg-boss:', error))
      await boss.start()
      await boss.createQueue(queue)
      const consume: Consume = {
        kind: 'calls',
        ...(batch === 1 && { alsoWith: [2] }),
        call: async () => {
          const jobs = await boss.fetch(queue, { batchSize: batch })
          if (jobs.length > 0) {
            await boss.complete(
              queue,
              jobs.map(({ id }) => id),
            )
          }
          return jobs.length
        },
      }
      return {
        produce: async (count) => {
          if (count === 1) await boss.send(queue, payload)
          else await boss.insert(Array.from({ length: count }, () => ({ name: queue, data: payload })))
        },
        consume,
        close: () => boss.stop({ graceful: false, wait: true }),
      }
    },
  }
}
