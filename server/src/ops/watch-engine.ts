import type { EngineOptions } from '../engine/create-engine.ts'
import type { Logger } from './log.ts'

const namedMax = 10

/** What the engine does by itself and a person should know of, as log lines. */
export function watchEngine(log: Logger): Required<Pick<EngineOptions, 'onDropped' | 'onError'>> {
  return {
    onDropped: (changes) => {
      const byQueue = Map.groupBy(changes, (change) => change.fromQueue)
      for (const [queue, dropped] of byQueue) {
        const items = dropped.slice(0, namedMax).map(({ fromId, cause }) => ({ id: fromId, cause }))
        log.warn(
          { queue, dropped: dropped.length, items },
          'items died and were deleted: their queue has no dead queue',
        )
      }
    },
    onError: (error) => log.warn({ err: error }, 'background work of the queues failed; it is tried again'),
  }
}
