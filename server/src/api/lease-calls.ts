import type { FastifyReply } from 'fastify'
import { KnownError } from '../errors.ts'
import { abortWhenClientGone, isClientConnected } from './http/client-gone.ts'

/** How a lease call ends before its time. */
export type LeaseEnd = Readonly<{ signal: AbortSignal; isThere(): boolean }>

/**
 * The lease calls that wait at this server, by queue and client.
 *
 * A client that wants no more items cannot just hang up: the answer may be on its way, and what is in it
 * would be leased by nobody until the leases end. So it asks for an answer now, and hears for certain
 * whether it got something.
 */
export interface LeaseCalls {
  /** Does `work` with a signal that aborts when the call is cancelled, or its client goes away, and with a look at the client. */
  run<T>(
    queue: string,
    clientId: string,
    reply: FastifyReply,
    work: (end: LeaseEnd) => Promise<T>,
  ): Promise<T>
  /** False when no call of that client waits for that queue, here. */
  cancel(queue: string, clientId: string): boolean
}

export function createLeaseCalls(): LeaseCalls {
  const calls = new Map<string, AbortController>()
  const keyOf = (queue: string, clientId: string): string => `${queue}\0${clientId}`
  return {
    run: async (queue, clientId, reply, work) => {
      const ending = abortWhenClientGone(reply)
      const end = { signal: ending.signal, isThere: () => isClientConnected(reply) }
      const key = keyOf(queue, clientId)
      // A second one of the same client will be refused, and must not take the place of the first.
      if (calls.has(key)) return work(end)
      calls.set(key, ending)
      try {
        return await work(end)
      } finally {
        calls.delete(key)
      }
    },
    cancel: (queue, clientId) => {
      const ending = calls.get(keyOf(queue, clientId))
      ending?.abort(new KnownError('LEASE_TIMEOUT', `client ${clientId} wants no more items of ${queue}`))
      return ending !== undefined
    },
  }
}
