import { type ErrorCode, KnownError } from '../errors.ts'

export const exitCodes = {
  ok: 0,
  /** The command failed: port taken, store locked, Vault unreachable, counts differ. */
  failed: 1,
  /** The command line or the settings are invalid: unknown command, flag or setting, value out of bounds. */
  badUsage: 2,
} as const

/** The states of `redrive check`, as monitors define them. */
export const checkCodes = { ok: 0, warning: 1, critical: 2, unknown: 3 } as const

const badUsage: ReadonlySet<ErrorCode> = new Set([
  'SETTING_INVALID',
  'STORE_URL_INVALID',
  'PROTECTED_MODE',
  'PROCESSES_REFUSED',
] satisfies ErrorCode[])

export function exitCodeFor(error: unknown): number {
  return error instanceof KnownError && badUsage.has(error.code) ? exitCodes.badUsage : exitCodes.failed
}
