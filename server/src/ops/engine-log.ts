import type { EngineEvent } from '../engine/events.ts'
import type { Logger } from './log.ts'

const namedMax = 10

/** Logs what the engine does without being asked and an operator should know. */
export function logEngineEvent(log: Logger, event: EngineEvent): void {
  if (event.type !== 'items-dropped') return
  const { queue, items } = event
  const named = items.slice(0, namedMax).map(({ fromId, cause }) => ({ id: fromId, cause }))
  log.warn(
    { queue, dropped: items.length, items: named },
    'items died and were deleted: their queue has no dead queue',
  )
}
