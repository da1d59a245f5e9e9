/**
 * A process that does nothing but POST: the same bodies and headers to the same receivers, with the HTTP
 * client and the parallelism of a server. This is the upper limit for its pushes.
 */
import { Pool } from 'undici'

export type BareLoopTask = Readonly<{
  urls: readonly string[]
  headers: Readonly<Record<string, string>>
  body: string
  pushes: number
  parallel: number
}>

const task = JSON.parse(process.argv[2] ?? '{}') as BareLoopTask
const pools = task.urls.map((url) => new Pool(url, { connections: 200 }))
let next = 0
const run = async (until: number): Promise<void> => {
  while (next < until) {
    const pool = pools[next++ % pools.length] as Pool
    const { body } = await pool.request({
      method: 'POST',
      path: '/hook',
      headers: task.headers,
      body: task.body,
    })
    await body.dump()
  }
}
/** The first pushes compile the code and open the connections. */
const warmUp = Math.floor(task.pushes / 5)
const runUntil = (until: number) => Promise.all(Array.from({ length: task.parallel }, () => run(until)))
await runUntil(warmUp)
const startedAt = performance.now()
await runUntil(task.pushes)
process.send?.({ perSecond: (1_000 * (task.pushes - warmUp)) / (performance.now() - startedAt) })
await Promise.all(pools.map((pool) => pool.close()))
process.disconnect?.()
