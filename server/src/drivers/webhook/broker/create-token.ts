import { randomInt } from 'node:crypto'

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const tokenLength = 12

/** A random token, for an object that is created without one. */
export function createToken(): string {
  return Array.from({ length: tokenLength }, () => letters[randomInt(letters.length)]).join('')
}
