import type { Client } from '../client.ts'
import type { Clock } from '../http/clock.ts'
import { RedriveError } from '../http/error.ts'
import { type Heartbeat, type SendHeartbeat, startHeartbeat } from './heartbeat.ts'
import { sendToServer } from './heartbeat-calls.ts'

export type WorkerHeartbeatOptions = Readonly<{
  /** The kind of worker, such as `order-worker`. */
  type: string
  /** Default: the `clientId` of the worker. */
  instanceId?: string
  namespace?: string
  /** Default: over HTTP. `sendToRedis(redis)` writes to Redis instead. */
  send?: SendHeartbeat
  /** Default 10,000. */
  intervalMs?: number
  /**
   * Default: the items that wait in the queue, if the worker may read them. Null: the lag is not reported.
   */
  readLag?: (() => number | null | Promise<number | null>) | null
}>

export function startWorkerHeartbeat(
  parts: Readonly<{
    client: Pick<Client, 'sendHeartbeats' | 'getQueueStats'>
    clock: Clock
    queue: string
    clientId: string
    options: WorkerHeartbeatOptions
    onError(error: unknown): void
  }>,
): Heartbeat {
  const { client, clock, queue, clientId, options, onError } = parts
  const { type, instanceId = clientId, namespace, intervalMs } = options
  const readLag = options.readLag === undefined ? createLagReader(client, queue) : options.readLag
  return startHeartbeat({
    type,
    instanceId,
    send: options.send ?? sendToServer(client, namespace === undefined ? {} : { namespace }),
    clock,
    onError,
    ...(intervalMs !== undefined && { intervalMs }),
    ...(readLag !== null && { readLag }),
  })
}

/** The items of the queue that are not leased. A worker that may not read them does not ask again. */
function createLagReader(client: Pick<Client, 'getQueueStats'>, queue: string): () => Promise<number | null> {
  let isRefused = false
  return async () => {
    if (isRefused) return null
    try {
      const { partitions } = await client.getQueueStats(queue, { retriesMax: 0, answerMsMax: 2_000 })
      return partitions.reduce((sum, { total, leased }) => sum + total - leased, 0)
    } catch (error) {
      isRefused = error instanceof RedriveError && (error.status === 403 || error.status === 401)
      return null
    }
  }
}
