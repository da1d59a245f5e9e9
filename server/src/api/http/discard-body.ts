import type { IncomingMessage } from 'node:http'

export type DiscardLimits = Readonly<{ bytesMax: number; msMax: number }>

/** Twice the largest body that any path takes. */
const limitsDefault: DiscardLimits = { bytesMax: 128_000_000, msMax: 5_000 }

/**
 * Reads the rest of a body that nobody wants and throws it away. A client that still sends would be reset if the
 * connection were closed under it, and never see the answer that tells it why. Who sends more than the bounds allow
 * is cut nonetheless.
 */
export function discardBody(request: IncomingMessage, { bytesMax, msMax } = limitsDefault): void {
  if (request.complete) return
  const { socket } = request
  let bytes = 0
  const timer = setTimeout(() => socket.destroy(), msMax)
  request.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length
    if (bytes > bytesMax) socket.destroy()
  })
  request.once('close', () => clearTimeout(timer))
  request.once('end', () => clearTimeout(timer))
  // A client that goes away now has its answer, or does not want it.
  request.on('error', () => {})
  request.resume()
}
