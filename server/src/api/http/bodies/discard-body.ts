import type { IncomingMessage } from 'node:http'

export type DiscardLimits = Readonly<{ bytesMax: number; msMax: number }>

/** `bytesMax` is twice the largest body that any path accepts. */
const limitsDefault: DiscardLimits = { bytesMax: 128_000_000, msMax: 5_000 }

/**
 * Reads and discards the rest of a request body. Closing the connection instead would reset a client that
 * still sends, and the client would never see the answer with the reason. A client that exceeds the limits is
 * disconnected.
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
  // The answer is sent already, so a client that disconnects now is no error.
  request.on('error', () => {})
  request.resume()
}
