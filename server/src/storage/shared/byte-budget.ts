/**
 * A transaction that moves, copies or removes payloads ends with the item that reaches so many bytes of them, however few
 * items those are: a thousand of 16 MiB in one go would keep everybody else waiting for minutes.
 */
export const stepBytesMax = 16 * 2 ** 20

/**
 * Of what was found, at most `countMax`, as much as one transaction takes: up to the one that reaches `stepBytesMax`, which is
 * one of them. `isMore`: something was left, or may be beyond what was looked for.
 */
export function stepOf<Found>(
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
