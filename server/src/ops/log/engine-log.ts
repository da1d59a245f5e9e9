import type { EngineEvent } from '../../engine/events.ts'
import type { Logger } from './log.ts'

const listedMax = 10

/** Logs automatic actions of the engine that an operator should know about. */
export function logEngineEvent(log: Logger, event: EngineEvent): void {
  if (event.type !== 'items-dropped') return
  const { queue, items } = event
  const named = items.slice(0, listedMax).map(({ fromId, cause }) => ({ id: fromId, cause }))
  log.warn(
    { queue, dropped: items.length, items: named },
    'items died and were deleted: their queue has no dead queue',
  )
}
