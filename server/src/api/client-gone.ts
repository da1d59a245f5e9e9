import type { FastifyReply } from 'fastify'

/**
 * Aborts when the client goes away before it has its whole answer. For handlers that wait.
 *
 * Not `request.signal`: that one aborts as soon as a body was read to its end, which is before any
 * handler of a POST is called.
 */
export function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  const check = (): void => {
    if (!raw.writableFinished) gone.abort()
  }
  if (raw.destroyed || raw.socket?.destroyed) check()
  else raw.once('close', check)
  return gone.signal
}
