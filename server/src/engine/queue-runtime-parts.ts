import type { Clock } from '../core/instant.ts'
import type { StoreReads } from '../storage/contract/storage.ts'
import type { Writer } from './writer.ts'

/** What the room of a queue works with. */
export type RoomParts = Readonly<{
  storage: StoreReads
  writer: Writer
  clock: Clock
  /** Unprocessed requests per queue; above it they are refused. */
  requestsMax: number
  /** A batch that takes longer is not waited for by those who called: its outcome is unknown to them. */
  batchMsMax: number
  /** Items of the queue became available: other servers may have leases that wait. */
  onAvailable(queue: string): void
  /** Something will be due then. */
  onDue(at: number): void
  /** The queue was deleted by somebody else; one of its name may be there again. */
  onGone(): void
  /** The store refused a request, which may be because it has no such queue. */
  onRefused(error: unknown): void
  /** What went wrong in the background. */
  onError(error: unknown): void
}>
