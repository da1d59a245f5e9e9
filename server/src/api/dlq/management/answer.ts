/** The envelope and the log line that all calls of the management API share. */
import type { FastifyRequest } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { ApiContext } from '../../context.ts'

/** The schema of a successful answer. */
export function Success<const S extends TSchema>(data: S) {
  return Type.Object({ ok: Type.Literal(true), data, error: Type.Null() })
}

export function createSuccess<T>(data: T): { ok: true; data: T; error: null } {
  return { ok: true, data, error: null }
}

/** Logs a call under the names that alerts match: `event`, its counts, the actor and the duration. */
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
