import { createClient } from '@redis/client'
import { callersMax, type Drained, loadPeer, type Peer, payload, waitUntil } from './peer.ts'

interface Queue {
  waitUntilReady(): Promise<unknown>
  add(name: string, data: object): Promise<unknown>
  addBulk(jobs: readonly { name: string; data: object }[]): Promise<unknown>
  obliterate(options: { force: boolean }): Promise<void>
  close(): Promise<void>
}
interface Worker {
  on(event: 'completed' | 'error', listener: (about: unknown) => void): void
  waitUntilReady(): Promise<unknown>
  run(): Promise<void>
  close(isForced?: boolean): Promise<void>
}
interface Package {
  Queue: new (name: string, options: object) => Queue
  Worker: new (name: string, handle: () => Promise<void>, options: object) => Worker
}

export function createBullmqPeer(redisUrl: string): Peer {
  return {
    name: 'BullMQ',
    calls:
      `add(); addBulk() of 1000; a Worker with concurrency ${callersMax} and an empty handler. ` +
      'It cannot lease batches. Completed jobs are removed.',
    open: async (batch) => {
      const { Queue, Worker } = await loadPeer<Package>('bullmq')
      const { hostname: host, port, username, password } = new URL(redisUrl)
      const name = `bench-${process.pid}-${Date.now()}`
      const options = {
        connection: {
          host,
          port: Number(port || 6379),
          maxRetriesPerRequest: null,
          ...(username !== '' && { username: decodeURIComponent(username) }),
          ...(password !== '' && { password: decodeURIComponent(password) }),
        },
      }
      const queue = new Queue(name, { ...options, defaultJobOptions: { removeOnComplete: true } })
      await queue.waitUntilReady()
      const drain = async (items: number, msMax: number): Promise<Drained> => {
        let completed = 0
        const worker = new Worker(name, async () => {}, {
          ...options,
          concurrency: callersMax,
          autorun: false,
        })
        worker.on('completed', () => completed++)
        worker.on('error', (error) => console.error('BullMQ:', error))
        await worker.waitUntilReady()
        void worker.run()
        const seconds = await waitUntil(() => completed >= items, msMax)
        const drained = { items: completed, seconds }
        await worker.close()
        return drained
      }
      return {
        produce: async (count) => {
          if (count === 1) await queue.add('bench', payload)
          else await queue.addBulk(Array.from({ length: count }, () => ({ name: 'bench', data: payload })))
        },
        consume: batch === 1 ? { kind: 'worker', drain } : null,
        close: async () => {
          await queue.obliterate({ force: true })
          await queue.close()
        },
      }
    },
  }
}

/**
 * Makes every acknowledged write durable, as in the other peers. Returns a function that restores the
 * settings.
 */
export async function makeRedisDurable(url: string): Promise<() => Promise<void>> {
  const client = createClient({ url })
  client.on('error', (error) => console.error('Redis:', error))
  await client.connect()
  const wanted = { appendonly: 'yes', appendfsync: 'always' } as const
  const before = await client.configGet(Object.keys(wanted))
  await client.configSet(wanted)
  const isRewriting = async () =>
    /aof_rewrite_(in_progress|scheduled):1/.test(await client.info('persistence'))
  await waitUntil(async () => !(await isRewriting()), 10_000)
  const now = await client.configGet(Object.keys(wanted))
  for (const [name, value] of Object.entries(wanted)) {
    if (now[name] !== value) throw new Error(`Redis keeps ${name} at ${now[name]}, wanted ${value}`)
  }
  return async () => {
    await client.configSet(before)
    client.destroy()
  }
}
