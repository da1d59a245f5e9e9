/** The text of API keys and of session tokens, and the hashes that are stored instead of them. */
import { hash, randomBytes } from 'node:crypto'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const secretDigits = 43
const visibleDigits = 8
const keyForm = /^qtr-[a-z0-9]{1,16}-[0-9A-Za-z]{43}$/

/** `prefix` identifies the key in lists, logs and audit rows. */
export type NewKeyText = Readonly<{ key: string; prefix: string; hash: string }>

export function createKeyText(tag: string): NewKeyText {
  const secret = createSecret()
  const key = `qtr-${tag}-${secret}`
  return { key, prefix: `qtr-${tag}-${secret.slice(0, visibleDigits)}`, hash: hashSecret(key) }
}

/** Random 256 bits in 43 base62 digits. */
export function createSecret(): string {
  let text = ''
  for (let rest = BigInt(`0x${randomBytes(32).toString('hex')}`); rest > 0n; rest /= 62n) {
    text = digits.charAt(Number(rest % 62n)) + text
  }
  return text.padStart(secretDigits, '0')
}

export function hasKeyForm(text: string): boolean {
  return keyForm.test(text)
}

/**
 * SHA-256 without salt and repetition is enough for 256 random bits: no dictionary contains them. The hash
 * finds the credential, so the time of the search says nothing about the credential itself.
 */
export function hashSecret(text: string): string {
  return hash('sha256', text, 'hex')
}
