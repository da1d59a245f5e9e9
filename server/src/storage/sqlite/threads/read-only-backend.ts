/** A file that is only read, without the lock: a server may have it open and write to it. */
import { KnownError } from '../../../errors.ts'
import type { Backend } from '../backend.ts'
import { checkReadable } from '../connection/database-file.ts'
import { resolveLinks } from './file-backend.ts'
import { Thread } from './thread.ts'
import type { ReadCall } from './thread-messages.ts'
import { WalState } from './wal.ts'

export class ReadOnlyBackend implements Backend {
  readonly #reader: Thread

  static async open(path: string): Promise<ReadOnlyBackend> {
    const file = resolveLinks(path)
    checkReadable(file)
    const wal = WalState.allocate()
    const data = { path: file, synchronous: 'full', lockWaitMs: 0, wal } as const
    return new ReadOnlyBackend(await Thread.start('reader-thread', data))
  }

  private constructor(reader: Thread) {
    this.#reader = reader
  }

  read(call: ReadCall): Promise<unknown> {
    return this.#reader.ask({ ask: 'read', what: call })
  }

  write(): Promise<unknown[]> {
    return Promise.reject(refuseWrite())
  }

  reconcile(): Promise<unknown> {
    return Promise.reject(refuseWrite())
  }

  async checkSpace(): Promise<void> {}

  close(): Promise<void> {
    return this.#reader.close()
  }
}

function refuseWrite(): KnownError {
  return new KnownError('STORE_UNWRITABLE', 'the store was opened for reading only')
}
