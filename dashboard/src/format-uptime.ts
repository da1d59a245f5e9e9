const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/** Formats the two largest units: `3 days 4 hours`, `1 minute 5 seconds`. */
export function formatUptime(seconds: number): string {
  let remaining = Math.max(0, Math.floor(seconds))
  const parts: string[] = []
  for (const [name, size] of units) {
    const count = Math.floor(remaining / size)
    remaining %= size
    if (count > 0) parts.push(`${count} ${name}${count === 1 ? '' : 's'}`)
  }
  return parts.slice(0, 2).join(' ') || '0 seconds'
}
