import { createBadRequest } from './protocol/fault.ts'

/** How many items a single call may contain. */
export type QueueApiLimits = Readonly<{
  produceItemsMax: number
  leaseItemsMax: number
  completeItemsMax: number
}>

export const defaultLimits: QueueApiLimits = {
  produceItemsMax: 1_000,
  leaseItemsMax: 1_000,
  completeItemsMax: 1_000,
}

/** The largest bodies in bytes, by kind of request. */
export const bodyBytesMax = {
  small: 512,
  ids: 256_000,
  update: 512_000,
  produce: 5_000_000,
  import: 64_000_000,
}

const bodyLimitTexts: ReadonlyMap<number, string> = new Map([
  [bodyBytesMax.small, '512B'],
  [bodyBytesMax.ids, '250.0KiB'],
  [bodyBytesMax.update, '500.0KiB'],
  // Decimal, unlike the others: the contract fixes this text.
  [bodyBytesMax.produce, '5.0MB'],
  [bodyBytesMax.import, '61.0MiB'],
])

/** Formats a limit for the error message: a limit of a route, or the smaller limit of the whole server. */
export function formatBodyLimit(bytes: number): string {
  const text = bodyLimitTexts.get(bytes)
  if (text !== undefined) return text
  if (bytes < 1_024) return `${bytes}B`
  if (bytes < 1_024 ** 2) return `${(bytes / 1_024).toFixed(1)}KiB`
  return `${(bytes / 1_024 ** 2).toFixed(1)}MiB`
}

/** Checks the `limit` of a list call. 0 selects the default. */
export function readListLimit(limit: number): number {
  if (limit < 0) throw createBadRequest('limit is invalid; limit cannot be negative')
  if (limit > 65_536) throw createBadRequest('limit is invalid; cannot be greater than 65536')
  return limit === 0 ? 1_000 : limit
}
