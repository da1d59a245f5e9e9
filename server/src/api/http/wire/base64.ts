import { Buffer } from 'node:buffer'

/**
 * The bytes, or undefined when the text is not base64: in the standard or the URL alphabet, with or without
 * padding. Node skips what is not base64: only if nothing was skipped is the length what it must be.
 */
export function decodeBase64(text: string): Buffer | undefined {
  const { length } = text
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  if (padding > 0 && length % 4 !== 0) return undefined
  const digits = length - padding
  if (digits % 4 === 1) return undefined
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === (digits * 3) >> 2 ? bytes : undefined
}
