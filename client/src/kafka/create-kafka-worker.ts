/**
 * Keeps a session of the worker running: after an error the next one starts, with growing pauses. A worker
 * stops only when `stop()` is called.
 */

import { type Heartbeat, startHeartbeat } from '../worker/heartbeat.ts'
import { ignoreConnectionErrors } from './cluster/connection-errors.ts'
import { type SessionParts, WorkerSession } from './cluster/worker-session.ts'
import type { KafkaWorkerOptions, WorkerErrorContext } from './options.ts'
import { readOptions } from './options.ts'
import type { WorkerCounts, WorkerEvents } from './partitions/partition-parts.ts'
import { pauseUnless } from './timing.ts'

export type PartitionState = Readonly<{ topic: string; partition: number; lag: number }>

export interface KafkaWorker {
  readonly instanceId: string
  /** Since the start. */
  counts(): Readonly<WorkerCounts>
  /** The partitions that this worker has now. */
  partitions(): readonly PartitionState[]
  /**
   * Lets handlers that are running finish, commits, and leaves the group. After `withinMs` (default 30,000)
   * the signals of the handlers abort, and their records are not committed. Never rejects.
   */
  stop(options?: Readonly<{ withinMs?: number }>): Promise<void>
  /** Resolves when the worker has stopped. */
  readonly stopped: Promise<void>
}

const backoffMsMin = 250
const backoffMsMax = 15_000
/** A session that was up for this long starts the pauses again at the shortest. */
const steadyMs = 60_000
const stopMsDefault = 30_000

/**
 * Starts a worker that reads topics of Kafka with retries and dead letters. Throws a KafkaWorkerOptionsError
 * if an option is invalid; everything else is reported to `onError` and retried.
 */
export function createKafkaWorker(options: KafkaWorkerOptions): KafkaWorker {
  ignoreConnectionErrors()
  const settings = readOptions(options, () => crypto.randomUUID().slice(0, 8))
  const nowMs = () => options.clock?.nowMs() ?? Date.now()
  const counts: WorkerCounts = { processed: 0, failed: 0, deadLettered: 0, parked: 0, skipped: 0 }
  let heartbeat: Heartbeat | undefined
  const events = createEvents(options, (error) => heartbeat?.recordRetry(error))
  const stopping = new AbortController()
  let graceMs = stopMsDefault
  let session: WorkerSession | undefined
  const parts: SessionParts = {
    settings,
    events,
    counts,
    nowMs,
    runId: crypto.randomUUID(),
    onProcessed: () => heartbeat?.recordMessage(),
    onJoined: () => {},
  }
  const partitions = () =>
    (session?.partitions ?? []).map(({ claim: { topic, partition }, lag }) => ({ topic, partition, lag }))
  const stopped = runSessions(stopping.signal, async () => {
    session = new WorkerSession(parts)
    try {
      await session.run(stopping.signal)
    } catch (error) {
      events.onError(error, { during: 'connect' })
    } finally {
      await session.close(stopping.signal.aborted ? graceMs : 0)
    }
    // A handler that goes on after its session must not run beside the next one.
    if (!stopping.signal.aborted) await session.ended()
  }).finally(() => heartbeat?.stop())
  const stop: KafkaWorker['stop'] = async ({ withinMs = stopMsDefault } = {}) => {
    if (!stopping.signal.aborted) graceMs = withinMs
    stopping.abort()
    void heartbeat?.shutDown()
    await stopped
  }
  if (options.heartbeat !== undefined)
    heartbeat = startHeartbeat({
      type: settings.type,
      instanceId: settings.instanceId,
      send: options.heartbeat,
      intervalMs: settings.heartbeatMs,
      readLag: () => partitions().reduce((sum, { lag }) => sum + lag, 0),
      onError: (error) => events.onError(error, { during: 'heartbeat' }),
      ...(options.clock !== undefined && { clock: options.clock }),
    })
  const { signal } = options
  const onAbort = (): void => void stop()
  if (signal?.aborted) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  void stopped.then(() => signal?.removeEventListener('abort', onAbort))
  return { instanceId: settings.instanceId, counts: () => ({ ...counts }), partitions, stop, stopped }
}

async function runSessions(signal: AbortSignal, runSession: () => Promise<void>): Promise<void> {
  for (let waitMs = backoffMsMin; !signal.aborted; waitMs = Math.min(waitMs * 2, backoffMsMax)) {
    const startedAtMs = performance.now()
    await runSession()
    if (performance.now() - startedAtMs > steadyMs) waitMs = backoffMsMin
    await pauseUnless(waitMs, signal)
  }
}

/** Errors of the callbacks must not break the worker. */
function createEvents(
  { onRetry, onDeadLetter, onError = warn }: KafkaWorkerOptions,
  recordRetry: (error: unknown) => void,
): WorkerEvents {
  return {
    onRetry: (event) => {
      recordRetry(event.error)
      callSafely(() => onRetry?.(event))
    },
    onDeadLetter: (event) => callSafely(() => onDeadLetter?.(event)),
    onError: (error, context) => callSafely(() => onError(error, context)),
  }
}

function callSafely(callback: () => void): void {
  try {
    callback()
  } catch {
    // There is no further place to report to.
  }
}

function warn(error: unknown, { during, topic, partition }: WorkerErrorContext): void {
  const message = error instanceof Error ? error.message : String(error)
  const place = topic === undefined ? '' : ` (${topic}${partition === undefined ? '' : `/${partition}`})`
  console.warn(`redrive kafka worker: ${during}${place} failed, will retry: ${message}`)
}
