/**
 * A transaction that moves, copies or removes payloads ends with the item whose payload reaches this number
 * of bytes. A thousand payloads of 16 MiB in one transaction would block all other writes for minutes.
 */
export const stepBytesMax = 16 * 2 ** 20

/**
 * Takes from `found` (at most `countMax` items) the items of one transaction: up to and including the item
 * whose bytes reach `stepBytesMax`. `isMore`: items were left, or more may exist beyond `countMax`.
 */
export function takeStep<Found>(
  found: readonly Found[],
  bytesOf: (each: Found) => number,
  countMax: number,
): Readonly<{ step: readonly Found[]; isMore: boolean }> {
  let bytes = 0
  const last = found.findIndex((each) => {
    bytes += bytesOf(each)
    return bytes >= stepBytesMax
  })
  const step = last === -1 ? found : found.slice(0, last + 1)
  return { step, isMore: step.length > 0 && (step.length < found.length || step.length === countMax) }
}
