/** What some platforms have and others do not. */
type WithBase64 = Readonly<{ toBase64?: () => string }>
type FromBase64 = Readonly<{ fromBase64?: (text: string) => Uint8Array }>
type NodeBuffer = Readonly<{
  from(data: ArrayBufferLike, offset: number, length: number): { toString(encoding: 'base64'): string }
  from(text: string, encoding: 'base64'): Uint8Array
}>

/** More arguments than this in one call overflow the stack of some engines. */
const argumentsMax = 0x2000

/** Base64 in the standard alphabet, padded. By the fastest way the platform has. */
export function toBase64(bytes: Uint8Array): string {
  const own = (bytes as WithBase64).toBase64
  if (own !== undefined) return own.call(bytes)
  const node = nodeBuffer()
  if (node !== undefined)
    return node.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return toBase64Portably(bytes)
}

/** Always a plain Uint8Array: a Buffer has methods that do something else under the same name. */
export function fromBase64(text: string): Uint8Array {
  const own = (Uint8Array as FromBase64).fromBase64
  if (own !== undefined) return own.call(Uint8Array, text)
  const node = nodeBuffer()
  if (node === undefined) return fromBase64Portably(text)
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

export function fromBase64Portably(text: string): Uint8Array {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at)
  return bytes
}

function nodeBuffer(): NodeBuffer | undefined {
  return (globalThis as { Buffer?: NodeBuffer }).Buffer
}
