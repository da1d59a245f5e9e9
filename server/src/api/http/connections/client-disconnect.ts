import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { KnownError } from '../../../errors.ts'

/**
 * Returns a controller that aborts when the client disconnects before it has received its whole answer, or
 * loses its credential. For handlers that wait.
 *
 * `request.signal` is not usable: it aborts as soon as the body was read completely, which is before the
 * handler of a POST runs. The `close` event of the response alone is not enough either: it follows a moment
 * after the end of the connection was read, and a client that reconnects immediately may be served in
 * between.
 */
export function abortOnDisconnect({ raw, request }: FastifyReply): AbortController {
  const controller = new AbortController()
  const abortIfUnanswered = (): void => {
    // A KnownError, because a client that leaves is no defect and needs no log line.
    if (!raw.writableFinished) {
      controller.abort(new KnownError('BAD_REQUEST', 'the client disconnected before its answer'))
    }
  }
  const { socket } = raw
  if (socket === null || socket.destroyed || raw.destroyed) {
    abortIfUnanswered()
    return controller
  }
  const listeners = getListeners(socket)
  listeners.add(abortIfUnanswered)
  const endWatch = request.caller.watch((reason) => controller.abort(reason))
  raw.once('close', () => {
    endWatch()
    listeners.delete(abortIfUnanswered)
    abortIfUnanswered()
  })
  return controller
}

const listenersBySocket = new WeakMap<Socket, Set<() => void>>()

/** Registers one `end` listener per connection, regardless of the number of its requests. */
function getListeners(socket: Socket): Set<() => void> {
  const known = listenersBySocket.get(socket)
  if (known !== undefined) return known
  const listeners = new Set<() => void>()
  listenersBySocket.set(socket, listeners)
  socket.once('end', () => {
    for (const listener of listeners) listener()
  })
  return listeners
}

/** A connection that was reset counts as closed a moment before its events are emitted. */
export function isClientConnected({ raw }: FastifyReply): boolean {
  return raw.socket?.destroyed === false
}
