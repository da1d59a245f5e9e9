/**
 * Calls `read` every 20 ms until `isExpected` accepts its result, and rejects after `msMax`. For changes that
 * another process makes at a time that the test does not control.
 */
export async function pollUntil<T>(
  read: () => Promise<T>,
  isExpected: (value: T) => boolean,
  msMax = 20_000,
): Promise<T> {
  const deadlineMs = Date.now() + msMax
  for (;;) {
    const value = await read()
    if (isExpected(value)) return value
    if (Date.now() > deadlineMs) throw new Error(`still ${JSON.stringify(value)} after ${msMax} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
