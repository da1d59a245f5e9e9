/** The largest bodies, in bytes, and how each is written in the refusal of a larger one. */
export const bodyBytesMax = {
  small: 512,
  ids: 256_000,
  update: 512_000,
  produce: 5_000_000,
  import: 64_000_000,
}

const texts: ReadonlyMap<number, string> = new Map([
  [bodyBytesMax.small, '512B'],
  [bodyBytesMax.ids, '250.0KiB'],
  [bodyBytesMax.update, '500.0KiB'],
  // Decimal, unlike the others: clients know it by this text.
  [bodyBytesMax.produce, '5.0MB'],
  [bodyBytesMax.import, '61.0MiB'],
])

/** A bound of our own, or the smaller one of the whole server. */
export function formatBodyLimit(bytes: number): string {
  const text = texts.get(bytes)
  if (text !== undefined) return text
  if (bytes < 1_024) return `${bytes}B`
  if (bytes < 1_024 ** 2) return `${(bytes / 1_024).toFixed(1)}KiB`
  return `${(bytes / 1_024 ** 2).toFixed(1)}MiB`
}
