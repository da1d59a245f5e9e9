import { Buffer } from 'node:buffer'

/**
 * Decodes base64 in the standard or the URL alphabet, with or without padding. Returns undefined for any
 * other text. Node skips characters that are not base64, so the length of its result shows whether any were
 * skipped.
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
