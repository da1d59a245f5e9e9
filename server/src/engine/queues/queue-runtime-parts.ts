import type { QueueName } from '../../core/ids/ids.ts'
import type { Clock } from '../../core/time/instant.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { Writer } from '../writes/writer.ts'

/** The parts of the engine that the runtime of a queue uses. */
export type QueueRuntimeParts = Readonly<{
  storage: StoreReads
  writer: Writer
  clock: Clock
  /** Unprocessed requests per queue. Further requests are rejected. */
  requestsMax: number
  /** How long callers wait for a batch to be written. After that its outcome is unknown to them. */
  batchMsMax: number
  /** Called when items of the queue became available: leases may wait for them on other servers. */
  onAvailable(queue: QueueName): void
  /** Called with an instant at which something will be due. */
  onDue(at: number): void
  /** Called when the queue was deleted by another server, perhaps to be created again. */
  onGone(): void
  /** Called when the store rejected a request. The reason may be that the queue is gone. */
  onRejected(error: unknown): void
  /** Called when background work failed. */
  onError(error: unknown): void
}>
