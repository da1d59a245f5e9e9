import type { WorkerErrorContext } from '../options.ts'
import type { PartitionGate } from './partition-gate.ts'
import type { WorkerEvents } from './partition-parts.ts'

const retryMsMin = 250
const retryMsMax = 15_000

/** Repeats a call until it succeeds. Undefined: the gate has ended, or the time is over. */
export async function untilDone<T>(
  {
    gate,
    events,
    context,
  }: Readonly<{
    gate: PartitionGate
    events: Pick<WorkerEvents, 'onError'>
    context: WorkerErrorContext
  }>,
  call: () => Promise<T>,
  untilMs = Number.POSITIVE_INFINITY,
): Promise<T | undefined> {
  for (let waitMs = retryMsMin; !gate.isEnded; waitMs = Math.min(waitMs * 2, retryMsMax)) {
    try {
      return await call()
    } catch (error) {
      events.onError(error, context)
      const atMs = Date.now() + waitMs
      if (atMs > untilMs) return undefined
      while (!gate.isEnded && Date.now() < atMs) await gate.waitUntil(atMs - Date.now())
    }
  }
  return undefined
}
