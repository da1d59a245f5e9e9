import type { FastifyRequest } from 'fastify'
import type { ApiContext } from '../../context.ts'

/**
 * Says in the log what was done, under the names that alerts look for: `event`, its counts, who did it and
 * how long it took.
 */
export function logEvent(
  event: 'dlq.list' | 'dlq.requeue' | 'dlq.purge' | 'dlq.stats',
  startedMs: number,
  facts: Readonly<Record<string, unknown>>,
  request: Pick<FastifyRequest, 'id' | 'caller'>,
  { log }: Pick<ApiContext, 'log'>,
): void {
  const duration_ms = Math.round((performance.now() - startedMs) * 1_000) / 1_000
  log.info({ event, ...facts, actor: request.caller.name, duration_ms, request_id: request.id }, event)
}
