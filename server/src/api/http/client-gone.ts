import type { Socket } from 'node:net'
import type { FastifyReply } from 'fastify'
import { KnownError } from '../../errors.ts'

/**
 * Aborts when the client goes away before it has its whole answer. For handlers that wait.
 *
 * Not `request.signal`: that one aborts as soon as a body was read to its end, which is before any
 * handler of a POST is called. And not only when the answer is closed: that comes a moment after the
 * client's end was read, and a client that asks again on another connection may be heard in between.
 */
export function abortWhenClientGone({ raw }: FastifyReply): AbortController {
  const gone = new AbortController()
  const check = (): void => {
    // Known, and not a defect: nobody is there to read it, and no person needs to look.
    if (!raw.writableFinished) gone.abort(new KnownError('BAD_REQUEST', 'the client went before its answer'))
  }
  const { socket } = raw
  if (socket === null || socket.destroyed || raw.destroyed) {
    check()
    return gone
  }
  const waiting = listenersOf(socket)
  waiting.add(check)
  raw.once('close', () => {
    waiting.delete(check)
    check()
  })
  return gone
}

const listenersBySocket = new WeakMap<Socket, Set<() => void>>()

/** One listener per connection, however many requests it brings, at once or one after the other. */
function listenersOf(socket: Socket): Set<() => void> {
  const known = listenersBySocket.get(socket)
  if (known !== undefined) return known
  const waiting = new Set<() => void>()
  listenersBySocket.set(socket, waiting)
  socket.once('end', () => {
    for (const check of waiting) check()
  })
  return waiting
}

/** Whether its connection still stands. One that was reset is known to be gone a moment before anybody is told. */
export function isClientConnected({ raw }: FastifyReply): boolean {
  return raw.socket?.destroyed === false
}
