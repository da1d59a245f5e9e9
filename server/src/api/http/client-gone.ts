import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { KnownError } from '../../errors.ts'

/**
 * Returns a controller that aborts when the client disconnects before it has received its whole answer.
 * For handlers that wait.
 *
 * `request.signal` is not usable: it aborts as soon as the body was read completely, which is before the
 * handler of a POST runs. The `close` event of the response alone is not enough either: it follows a moment
 * after the client's end of the connection was read, and a client that reconnects at once may be served in
 * between.
 */
export function abortWhenClientGone({ raw }: FastifyReply): AbortController {
  const gone = new AbortController()
  const check = (): void => {
    // A KnownError, because a client that leaves is no defect and needs no log line.
    if (!raw.writableFinished) {
      gone.abort(new KnownError('BAD_REQUEST', 'the client disconnected before its answer'))
    }
  }
  const { socket } = raw
  if (socket === null || socket.destroyed || raw.destroyed) {
    check()
    return gone
  }
  const listeners = listenersOf(socket)
  listeners.add(check)
  raw.once('close', () => {
    listeners.delete(check)
    check()
  })
  return gone
}

const listenersBySocket = new WeakMap<Socket, Set<() => void>>()

/** Registers one `end` listener per connection, regardless of the number of its requests. */
function listenersOf(socket: Socket): Set<() => void> {
  const known = listenersBySocket.get(socket)
  if (known !== undefined) return known
  const listeners = new Set<() => void>()
  listenersBySocket.set(socket, listeners)
  socket.once('end', () => {
    for (const check of listeners) check()
  })
  return listeners
}

/** A connection that was reset counts as closed a moment before its events are emitted. */
export function isClientConnected({ raw }: FastifyReply): boolean {
  return raw.socket?.destroyed === false
}
