import { isIPv6 } from 'node:net'

/**
 * Limits how many wrong credentials an address may send. Credentials that this server knows are not affected,
 * so that one wrong client does not lock out the others behind the same address.
 */
export interface FailedAttempts {
  isBlocked(address: string): boolean
  note(address: string): void
}

export type FailedAttemptLimits = Readonly<{ attemptsMax: number; windowMs: number; nowMs(): number }>

type Window = { startedMs: number; count: number }

/** The memory of an attacker with many addresses: the oldest are forgotten. */
const addressesMax = 10_000

export function createFailedAttempts({ attemptsMax, windowMs, nowMs }: FailedAttemptLimits): FailedAttempts {
  const windows = new Map<string, Window>()
  const find = (address: string): Window | undefined => {
    const key = toNetwork(address)
    const window = windows.get(key)
    if (window === undefined || nowMs() - window.startedMs < windowMs) return window
    windows.delete(key)
    return undefined
  }
  return {
    isBlocked: (address) => (find(address)?.count ?? 0) >= attemptsMax,
    note: (address) => {
      const window = find(address)
      if (window !== undefined) {
        window.count++
        return
      }
      windows.set(toNetwork(address), { startedMs: nowMs(), count: 1 })
      if (windows.size <= addressesMax) return
      const oldest = windows.keys().next().value
      if (oldest !== undefined) windows.delete(oldest)
    },
  }
}

/** One machine usually has a whole /64 of IPv6 addresses. */
function toNetwork(address: string): string {
  if (!isIPv6(address) || address.startsWith('::ffff:')) return address
  const [head = '', tail] = address.split('::', 2)
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length
  const all = [...groups, ...new Array<string>(zeros).fill('0'), ...after]
  // A proxy may write the same address in several ways.
  return all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
