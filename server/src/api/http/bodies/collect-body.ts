import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/** The bodies that were collected, by request. */
const bodies = new WeakMap<IncomingMessage, Buffer>()

/**
 * Collects a large body in memory of its length. Fastify would keep all chunks and then copy them at once,
 * which takes twice the memory and stops the server for others. The stream that is returned has no content,
 * only the length that Fastify compares.
 */
export function collectBody(request: IncomingMessage, payload: Readable, length: number): Readable {
  // Not from the shared pool, so that the memory can move to another thread.
  const body = Buffer.allocUnsafeSlow(length)
  let received = 0
  const collected = Object.assign(new Readable({ read: () => {} }), { receivedEncodedLength: 0 })
  payload.on('data', (chunk: Uint8Array) => {
    body.set(chunk, received)
    received += chunk.length
  })
  payload.once('end', () => {
    if (received === length) bodies.set(request, body)
    collected.receivedEncodedLength = received
    collected.push(null)
  })
  payload.once('error', (error) => collected.destroy(error))
  return collected
}

/** The body that was collected for a request, once. */
export function takeCollectedBody(request: IncomingMessage): Buffer | undefined {
  const body = bodies.get(request)
  bodies.delete(request)
  return body
}
