import type { FastifyRequest } from 'fastify'
import type { Attribution } from '../../engine/engine.ts'

/** The caller, its address and its reason, for the audit rows of a change. */
export function createAttribution(
  { caller, id }: Pick<FastifyRequest, 'caller' | 'id'>,
  reason = '',
): Attribution {
  const { name, address, keyPrefix } = caller
  return {
    actor: name,
    reason,
    requestId: id,
    ...(address !== '' && { address }),
    ...(keyPrefix !== null && { keyPrefix }),
  }
}
