/**
 * The headers and payloads of messages, for the jobs that refer to them. All consumers of a message get the
 * same bytes at about the same time, so each server reads them once, or not at all if it accepted them.
 */
import type { Header } from '../../../core/items/item.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'

export type MessageBytes = Readonly<{ headers: readonly Header[]; payload: Uint8Array }>

export interface MessageCache {
  put(number: number, bytes: MessageBytes): void
  /** The messages that exist, by number. */
  read(numbers: readonly number[]): Promise<ReadonlyMap<number, MessageBytes>>
}

const bytesMaxDefault = 64 * 2 ** 20
/** The memory of an entry besides its payload. */
const entryBytes = 512

export function createMessageCache(
  storage: () => Pick<StoreReads, 'readMessages'>,
  bytesMax: number = bytesMaxDefault,
): MessageCache {
  /** The least recently used entry is first. */
  const entries = new Map<number, MessageBytes>()
  const reading = new Map<number, Promise<void>>()
  let bytes = 0

  const measure = ({ payload }: MessageBytes) => payload.byteLength + entryBytes
  const remove = (number: number): void => {
    const entry = entries.get(number)
    if (entry === undefined) return
    entries.delete(number)
    bytes -= measure(entry)
  }
  const put = (number: number, entry: MessageBytes): void => {
    remove(number)
    entries.set(number, entry)
    bytes += measure(entry)
    for (const oldest of entries.keys()) {
      if (bytes <= bytesMax || entries.size === 1) return
      remove(oldest)
    }
  }

  return {
    put,
    read: async (numbers) => {
      const found = new Map<number, MessageBytes>()
      const missing: number[] = []
      for (const number of new Set(numbers)) {
        const entry = entries.get(number)
        if (entry === undefined) missing.push(number)
        else {
          found.set(number, entry)
          entries.delete(number)
          entries.set(number, entry)
        }
      }
      if (missing.length === 0) return found
      const own = missing.filter((number) => !reading.has(number))
      const read = storage()
        .readMessages(own)
        .then((messages) => {
          for (const { number, headers, payload } of messages) put(number, { headers, payload })
          for (const { number, headers, payload } of messages) found.set(number, { headers, payload })
        })
        .finally(() => {
          for (const number of own) reading.delete(number)
        })
      const others = missing.flatMap((number) => reading.get(number) ?? [])
      for (const number of own) reading.set(number, read)
      await Promise.all([own.length > 0 ? read : undefined, ...others])
      for (const number of missing) {
        const entry = entries.get(number)
        if (entry !== undefined) found.set(number, entry)
      }
      return found
    },
  }
}
