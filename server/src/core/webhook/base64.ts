/** Base64 without the tolerance of `Buffer`, which skips characters that it does not know. */

const pattern = /^[A-Za-z0-9+/]*={0,2}$/

/** Undefined: the text is not standard base64. Padding may be missing. */
export function decodeBase64(text: string): Uint8Array | undefined {
  const body = text.replace(/=+$/, '')
  if (!pattern.test(text) || body.length % 4 === 1) return undefined
  if (text.length !== body.length && text.length % 4 !== 0) return undefined
  const binary = atob(body)
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}

export function encodeBase64(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}
