import type { HeldLock } from '../contract/locks.ts'
import type { ReadCall } from './threads/thread-messages.ts'
import type { Write } from './write.ts'

/** The calls in which a store in a file (threads/file-backend.ts) and a store in memory differ. */
export interface Backend {
  write(write: Write): Promise<unknown[]>
  read(call: ReadCall): Promise<unknown>
  reconcile(lock: HeldLock | undefined): Promise<unknown>
  /** Rejects with STORE_FULL while there is no space to write. */
  checkSpace(): Promise<void>
  close(): Promise<void>
}
