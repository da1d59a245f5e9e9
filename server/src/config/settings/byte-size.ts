/** Units of sizes such as `512`, `16KiB` and `64MB`. */
const units = [
  ['GiB', 1024 ** 3],
  ['GB', 1000 ** 3],
  ['MiB', 1024 ** 2],
  ['MB', 1000 ** 2],
  ['KiB', 1024],
  ['kB', 1000],
  ['B', 1],
] as const

/** Returns whole bytes, or undefined if the text is not a size. */
export function parseByteSize(text: string): number | undefined {
  const [, digits, unit] = /^(\d+(?:\.\d+)?) ?([a-z]*)$/i.exec(text) ?? []
  if (digits === undefined || unit === undefined) return undefined
  const wanted = unit === '' ? 'b' : unit.toLowerCase()
  const scale = units.find(([name]) => name.toLowerCase() === wanted)?.[1]
  const bytes = scale === undefined ? Number.NaN : Number(digits) * scale
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** Formats in the shortest exact form. */
export function formatByteSize(bytes: number): string {
  const [name, scale] = units.find(([, size]) => bytes >= size && bytes % size === 0) ?? ['B', 1]
  return scale === 1 ? String(bytes) : `${bytes / scale}${name}`
}
