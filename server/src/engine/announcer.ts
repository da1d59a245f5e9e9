import type { QueueName } from '../core/ids/ids.ts'
import type { StoreReads } from '../storage/contract/storage.ts'

export interface Announcer {
  /** Items of the queue became available here. */
  add(queue: QueueName): void
  stop(): Promise<void>
}

/**
 * Announce at most once per interval, regardless of load: each announcement makes other servers read
 * counts.
 */
const intervalMs = 5

/** Announces to the other servers in which queues items became available, so that leases there wake up. */
export function createAnnouncer(
  storage: Pick<StoreReads, 'announce'>,
  onError: (error: unknown) => void,
): Announcer {
  const queues = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let current: Promise<void> = Promise.resolve()
  let isStopped = false

  const announce = (): void => {
    timer = undefined
    const names = [...queues]
    queues.clear()
    current = current.then(() => storage.announce(names)).catch(onError)
  }
  return {
    add: (queue) => {
      if (isStopped) return
      queues.add(queue)
      timer ??= setTimeout(announce, intervalMs)
    },
    stop: async () => {
      isStopped = true
      clearTimeout(timer)
      await current
    },
  }
}
