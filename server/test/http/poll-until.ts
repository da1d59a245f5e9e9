/** Asks again and again until the answer is the one waited for. For what other processes do in their own time. */
export async function pollUntil<T>(
  ask: () => Promise<T>,
  isIt: (answer: T) => boolean,
  msMax = 20_000,
): Promise<T> {
  const deadlineMs = Date.now() + msMax
  for (;;) {
    const answer = await ask()
    if (isIt(answer)) return answer
    if (Date.now() > deadlineMs) throw new Error(`still ${JSON.stringify(answer)} after ${msMax} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
