import type { StoreReads } from '../storage/contract/storage.ts'

export interface Announcer {
  /** Items of the queue became available here. */
  add(queue: string): void
  stop(): Promise<void>
}

/** One word per so long at most, however much is produced: it costs the others' leases no more than that. */
const gatherMs = 5

export function createAnnouncer(
  storage: Pick<StoreReads, 'announce'>,
  onError: (error: unknown) => void,
): Announcer {
  const queues = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let current: Promise<void> = Promise.resolve()
  let isStopped = false

  const tell = (): void => {
    timer = undefined
    const names = [...queues]
    queues.clear()
    current = current.then(() => storage.announce(names)).catch(onError)
  }
  return {
    add: (queue) => {
      if (isStopped) return
      queues.add(queue)
      timer ??= setTimeout(tell, gatherMs)
    },
    stop: async () => {
      isStopped = true
      clearTimeout(timer)
      await current
    },
  }
}
