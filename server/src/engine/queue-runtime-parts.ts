import type { Clock } from '../core/instant.ts'
import type { ItemChange } from '../storage/contract/items.ts'
import type { Storage } from '../storage/contract/storage.ts'

/** What the room of a queue works with. */
export type RoomParts = Readonly<{
  storage: Storage
  clock: Clock
  /** Unprocessed requests per queue; above it they are refused. */
  requestsMax: number
  /** A batch that takes longer is not waited for by those who called: its outcome is unknown to them. */
  batchMsMax: number
  /** Changes by which items became available, or moved to another queue. */
  onChanges(changes: readonly ItemChange[]): void
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
