import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'

export interface Drain {
  readonly isStopping: boolean
  /** Aborts when the stop begins. */
  readonly signal: AbortSignal
  connections(): number
  /** Whether an answer on this connection has begun, so that another one cannot be written there. */
  hasBegunAnswer(socket: Socket): boolean
  /**
   * Accepts no more connections, lets the requests under way finish, and cuts those that are not
   * finished `graceMs` after. Returns how many were cut. Called again, it can only shorten the wait.
   */
  stop(graceMs: number): Promise<number>
}

/**
 * The graceful end of an HTTP server.
 *
 * Idle connections stay open while others finish: a request that was already on its way to us gets
 * an answer (503, from the `isStopping` check at the front) instead of a reset. When nothing is under
 * way any more, all connections are closed.
 */
export function createDrain(server: Server): Drain {
  const stopping = new AbortController()
  const answers = new Set<ServerResponse>()
  const answering = new WeakMap<Socket, ServerResponse>()
  let connections = 0
  let cut = 0
  let whenDone: Promise<number> | undefined
  let checkDone: () => void = () => {}

  server.on('connection', (socket: Socket) => {
    connections++
    socket.once('close', () => {
      connections--
      checkDone()
    })
  })
  const leave = function (this: ServerResponse): void {
    answers.delete(this)
    checkDone()
  }
  server.prependListener('request', (request: IncomingMessage, answer: ServerResponse) => {
    answers.add(answer)
    answering.set(request.socket, answer)
    answer.on('close', leave)
  })

  const begin = (): Promise<number> => {
    stopping.abort()
    for (const answer of answers) if (!answer.headersSent) answer.setHeader('Connection', 'close')
    // Not `server.close()`: that one also resets idle connections, at once.
    NetServer.prototype.close.call(server)
    return new Promise((resolve) => {
      checkDone = () => {
        if (answers.size > 0) return
        if (connections === 0) resolve(cut)
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
    connections: () => connections,
    hasBegunAnswer: (socket) => {
      const answer = answering.get(socket)
      return answer !== undefined && answers.has(answer) && answer.headersSent
    },
    stop: async (graceMs) => {
      whenDone ??= begin()
      const timer = setTimeout(() => {
        cut += answers.size
        server.closeAllConnections()
      }, graceMs)
      return whenDone.finally(() => clearTimeout(timer))
    },
  }
}
