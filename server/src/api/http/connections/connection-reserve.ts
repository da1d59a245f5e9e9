import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { connectionEvent } from './connection-event.ts'

/** Connections that are accepted beyond the limit, for health checks only. */
export const reservedMax = 16
/** The paths of health checks. */
const reservedPaths: ReadonlySet<string> = new Set([
  '/health',
  '/healthz',
  '/readyz',
  '/metrics',
  '/actuator/health',
  '/actuator/health/liveness',
  '/actuator/health/readiness',
])
/** A connection without a request for this long is closed if another one needs its place. */
const idleMsMin = 1_000
/** A reserved connection is closed after this time, even if it is silent. */
const reservedMsMax = 5_000

export interface ConnectionReserve {
  /** Whether only health checks are answered on this connection. */
  isReserved(socket: Socket): boolean
}

export function isHealthPath(url: string): boolean {
  return reservedPaths.has(url.split('?', 1)[0] ?? '')
}

/**
 * Keeps health checks possible when all connections are in use. At the limit, a new connection replaces the
 * one that has been idle the longest. If none is idle, the new connection is one of a few reserved ones: it
 * gets the answer to a health check, or an error, and is closed.
 */
export function createConnectionReserve(
  server: Server,
  connectionsMax: number,
  nowMs: () => number = () => performance.now(),
): ConnectionReserve {
  server.maxConnections = connectionsMax + reservedMax
  const reserved = new WeakSet<Socket>()
  /** Connections without a request in progress and since when, the longest idle first. */
  const idle = new Map<Socket, number>()
  let connections = 0

  const closeLongestIdle = (): boolean => {
    for (const [socket, sinceMs] of idle) {
      if (socket.destroyed) continue
      if (nowMs() - sinceMs < idleMsMin) return false
      idle.delete(socket)
      socket.destroy()
      return true
    }
    return false
  }

  server.on(connectionEvent(server), (socket: Socket) => {
    connections++
    let timer: NodeJS.Timeout | undefined
    if (connections > connectionsMax && !closeLongestIdle()) {
      reserved.add(socket)
      timer = setTimeout(() => socket.destroy(), reservedMsMax)
    } else idle.set(socket, nowMs())
    socket.once('close', () => {
      clearTimeout(timer)
      connections--
      idle.delete(socket)
    })
  })
  server.prependListener('request', (request: IncomingMessage, answer: ServerResponse) => {
    const { socket } = request
    idle.delete(socket)
    answer.once('close', () => {
      if (!socket.destroyed && !reserved.has(socket)) idle.set(socket, nowMs())
    })
  })
  return { isReserved: (socket) => reserved.has(socket) }
}
