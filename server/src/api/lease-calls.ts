import type { FastifyReply } from 'fastify'
import { KnownError } from '../errors.ts'
import { abortOnDisconnect, isClientConnected } from './http/connections/client-disconnect.ts'

/** Tells a lease call when to stop waiting, and whether its client is still connected. */
export type LeaseEnd = Readonly<{ signal: AbortSignal; isConnected(): boolean }>

/**
 * The lease calls that wait at this server, by queue and client.
 *
 * A client that wants no more items cannot simply disconnect: items in an answer that is already on its way
 * would stay leased, without a worker, until their leases end. It cancels its call instead, and the answer to
 * that call shows whether it still received items.
 */
export interface LeaseCalls {
  /**
   * Calls `work` with a signal that aborts when the call is cancelled or its client disconnects, and with a
   * function that returns whether the client is connected.
   */
  run<T>(
    queue: string,
    clientId: string,
    reply: FastifyReply,
    work: (end: LeaseEnd) => Promise<T>,
  ): Promise<T>
  /** Returns false if no call of this client waits for this queue at this server. */
  cancel(queue: string, clientId: string): boolean
}

export function createLeaseCalls(): LeaseCalls {
  const calls = new Map<string, AbortController>()
  const createKey = (queue: string, clientId: string): string => `${queue}\0${clientId}`
  return {
    run: async (queue, clientId, reply, work) => {
      const ending = abortOnDisconnect(reply)
      const end = { signal: ending.signal, isConnected: () => isClientConnected(reply) }
      const key = createKey(queue, clientId)
      // The engine refuses a second call of the same client, so it must not replace the first one.
      if (calls.has(key)) return work(end)
      calls.set(key, ending)
      try {
        return await work(end)
      } finally {
        calls.delete(key)
      }
    },
    cancel: (queue, clientId) => {
      const ending = calls.get(createKey(queue, clientId))
      ending?.abort(
        new KnownError('LEASE_TIMEOUT', `client ${clientId} cancelled its lease call on queue ${queue}`),
      )
      return ending !== undefined
    },
  }
}
