import type { QueueName } from '../../core/ids/ids.ts'
import { type Clock, type Instant, usPerSecond } from '../../core/time/instant.ts'
import type { Writer } from '../writes/writer.ts'

export interface LeaseCallRecorder {
  /** Records the lease calls since the last pass. */
  pass(): Promise<void>
}

/** A worker that waits all the time is recorded again after this time. */
const recordedForUs = 30 * usPerSecond
const callsPerWrite = 1_000

/**
 * Records in the store when workers last asked this server for items, so that every server knows which queues
 * have workers. A queue is recorded at most once in `recordedForUs`, however many workers ask.
 */
export function createLeaseCallRecorder(
  parts: Readonly<{
    writer: Writer
    clock: Clock
    /** The last lease calls of the queues that are open on this server. */
    listCalls(): readonly Readonly<{ queue: QueueName; at: Instant }>[]
  }>,
): LeaseCallRecorder {
  const { writer, clock, listCalls } = parts
  let recorded = new Map<QueueName, Instant>()

  return {
    pass: async () => {
      const now = clock.now()
      const calls = listCalls()
      // Forget queues that are no longer open.
      recorded = new Map(calls.flatMap(({ queue }) => withTime(queue, recorded.get(queue))))
      const due = calls.filter(({ queue, at }) => {
        const before = recorded.get(queue)
        return before === undefined || (at > before && Math.abs(now - before) >= recordedForUs)
      })
      for (let from = 0; from < due.length; from += callsPerWrite) {
        const step = due.slice(from, from + callsPerWrite)
        await writer.write([{ op: 'record-lease-calls', calls: step }])
        for (const { queue, at } of step) recorded.set(queue, at)
      }
    },
  }
}

function withTime(queue: QueueName, at: Instant | undefined): [QueueName, Instant][] {
  return at === undefined ? [] : [[queue, at]]
}
