import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { connectionEvent } from './connection-event.ts'

export interface Drain {
  readonly isStopping: boolean
  /** Aborts when the stop begins. */
  readonly signal: AbortSignal
  countConnections(): number
  /** Whether an answer on this connection has begun, so that no other answer can be written to it. */
  hasBegunAnswer(socket: Socket): boolean
  /**
   * Accepts no more connections, lets the requests in progress finish, and closes the connections of
   * requests that are not finished after `graceMs`. Returns how many requests were cut off. A second call
   * can only shorten the wait.
   */
  stop(graceMs: number): Promise<number>
}

/**
 * Creates the graceful shutdown of an HTTP server.
 *
 * Idle connections stay open while requests finish: a request that is already on its way to this server gets
 * an answer (503, from the `isStopping` check in the onRequest hook) instead of a reset. All connections are
 * closed once no request is in progress.
 */
export function createDrain(server: Server): Drain {
  const stopping = new AbortController()
  const answers = new Set<ServerResponse>()
  const lastAnswers = new WeakMap<Socket, ServerResponse>()
  let connections = 0
  let cutOff = 0
  let whenDone: Promise<number> | undefined
  let checkDone: () => void = () => {}

  server.on(connectionEvent(server), (socket: Socket) => {
    connections++
    socket.once('close', () => {
      connections--
      checkDone()
    })
  })
  const onClose = function (this: ServerResponse): void {
    answers.delete(this)
    checkDone()
  }
  server.prependListener('request', (request: IncomingMessage, answer: ServerResponse) => {
    answers.add(answer)
    lastAnswers.set(request.socket, answer)
    answer.on('close', onClose)
  })

  const begin = (): Promise<number> => {
    stopping.abort()
    for (const answer of answers) if (!answer.headersSent) answer.setHeader('Connection', 'close')
    // Not `server.close()`, which also resets idle connections immediately.
    NetServer.prototype.close.call(server)
    return new Promise((resolve) => {
      checkDone = () => {
        if (answers.size > 0) return
        if (connections === 0) resolve(cutOff)
        else server.closeAllConnections()
      }
      checkDone()
    })
  }

  return {
    get isStopping() {
      return stopping.signal.aborted
    },
    signal: stopping.signal,
    countConnections: () => connections,
    hasBegunAnswer: (socket) => {
      const answer = lastAnswers.get(socket)
      return answer !== undefined && answers.has(answer) && answer.headersSent
    },
    stop: async (graceMs) => {
      whenDone ??= begin()
      const timer = setTimeout(() => {
        cutOff += answers.size
        server.closeAllConnections()
      }, graceMs)
      return whenDone.finally(() => clearTimeout(timer))
    },
  }
}
