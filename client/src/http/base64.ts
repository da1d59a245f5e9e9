/** Methods that only some platforms have. */
type WithBase64 = Readonly<{ toBase64?: () => string }>
type FromBase64 = Readonly<{ fromBase64?: (text: string) => Uint8Array }>
type NodeBuffer = Readonly<{
  from(data: ArrayBufferLike, offset: number, length: number): { toString(encoding: 'base64'): string }
  from(text: string, encoding: 'base64'): Uint8Array
}>

/** Some engines overflow the stack if one call has more arguments than this. */
const argumentsMax = 0x2000

/** Encodes as padded base64 in the standard alphabet, with the fastest method of the platform. */
export function toBase64(bytes: Uint8Array): string {
  const builtIn = (bytes as WithBase64).toBase64
  if (builtIn !== undefined) return builtIn.call(bytes)
  const node = getNodeBuffer()
  if (node !== undefined)
    return node.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return toBase64Portably(bytes)
}

/**
 * Returns a plain Uint8Array on every platform: Buffer overrides methods such as `slice` with other
 * behaviour.
 */
export function decodeBase64(text: string): Uint8Array {
  const builtIn = (Uint8Array as FromBase64).fromBase64
  if (builtIn !== undefined) return builtIn.call(Uint8Array, text)
  const node = getNodeBuffer()
  if (node === undefined) return decodeBase64Portably(text)
  const { buffer, byteOffset, byteLength } = node.from(text, 'base64')
  return new Uint8Array(buffer, byteOffset, byteLength)
}

export function toBase64Portably(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += argumentsMax) {
    binary += String.fromCharCode(...bytes.subarray(at, at + argumentsMax))
  }
  return btoa(binary)
}

export function decodeBase64Portably(text: string): Uint8Array {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at)
  return bytes
}

function getNodeBuffer(): NodeBuffer | undefined {
  return (globalThis as { Buffer?: NodeBuffer }).Buffer
}
