import { type ErrorCode, KnownError } from '../errors.ts'

export const exitCodes = {
  ok: 0,
  /** It was understood and did not work: port taken, store locked, Vault away, counts that differ. */
  failed: 1,
  /** It could not be understood: unknown command, flag or setting, a value out of bounds. */
  badUsage: 2,
} as const

const badUsage: ReadonlySet<ErrorCode> = new Set([
  'SETTING_INVALID',
  'STORE_URL_INVALID',
  'PROTECTED_MODE',
] satisfies ErrorCode[])

export function exitCodeFor(error: unknown): number {
  return error instanceof KnownError && badUsage.has(error.code) ? exitCodes.badUsage : exitCodes.failed
}
