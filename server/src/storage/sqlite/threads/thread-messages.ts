/**
 * What the threads of a SQLite store say to each other.
 *
 * Bytes travel in one block per message: cloning a small view would copy the whole buffer behind it,
 * and Node keeps small Buffers in a shared pool.
 */
import type { Instant } from '../../../core/instant.ts'
import { type ErrorCode, KnownError } from '../../../errors.ts'
import type { AuditQuery } from '../../contract/audit.ts'
import type { CampaignLettersQuery, CampaignsQuery } from '../../contract/campaigns.ts'
import type { CountsQuery } from '../../contract/counts.ts'
import type { ItemsQuery } from '../../contract/items.ts'
import type {
  ArchivedLettersQuery,
  ArchiveQuery,
  GroupsQuery,
  LetterCountsQuery,
  LetterLocation,
  LettersQuery,
} from '../../contract/letters.ts'
import type { HeldLock } from '../../contract/locks.ts'
import type { QueuesQuery } from '../../contract/queues.ts'
import type { Write } from '../write.ts'

export type ReadCall =
  | Readonly<{ read: 'queue'; name: string }>
  | Readonly<{ read: 'queues'; query: QueuesQuery }>
  | Readonly<{ read: 'counts'; query: CountsQuery }>
  | Readonly<{ read: 'items'; query: ItemsQuery }>
  | Readonly<{ read: 'archive'; query: ItemsQuery }>
  | Readonly<{ read: 'audit'; query: AuditQuery }>
  | Readonly<{ read: 'letters-by-id'; letterIds: readonly string[]; bytes: 'head' | 'all' }>
  | Readonly<{ read: 'archived-letters-by-id'; letterIds: readonly string[] }>
  | Readonly<{ read: 'letter-weights'; letterIds: readonly string[]; place: LetterLocation | undefined }>
  | Readonly<{ read: 'letters-by-uuid'; uuids: readonly string[] }>
  | Readonly<{ read: 'letters'; query: LettersQuery }>
  | Readonly<{ read: 'archived-letters'; query: ArchivedLettersQuery }>
  | Readonly<{ read: 'found-archived'; query: ArchiveQuery }>
  | Readonly<{ read: 'letter-counts'; query: LetterCountsQuery }>
  | Readonly<{ read: 'open-since'; since: Instant; queues: readonly string[] | undefined }>
  | Readonly<{ read: 'groups'; query: GroupsQuery }>
  | Readonly<{ read: 'group-slugs'; groupIds: readonly number[] }>
  | Readonly<{ read: 'group-arrivals'; groupIds: readonly number[]; since: Instant }>
  | Readonly<{ read: 'edits'; letterId: string }>
  | Readonly<{ read: 'campaign'; id: string }>
  | Readonly<{ read: 'campaigns'; query: CampaignsQuery }>
  | Readonly<{ read: 'campaign-letters'; query: CampaignLettersQuery }>
  | Readonly<{ read: 'next-due' }>
  /** `isMendable`: only what the reconciler sets right. */
  | Readonly<{ read: 'verify'; isRepairableOnly: boolean }>

export type Request = Readonly<{ call: number }> &
  (
    | Readonly<{ ask: 'write'; writes: Packed<readonly Write[]>; now: number; isBackground: boolean }>
    | Readonly<{ ask: 'read'; what: ReadCall }>
    | Readonly<{ ask: 'reconcile'; lock: HeldLock | undefined; now: number }>
    | Readonly<{ ask: 'tidy'; now: number }>
    | Readonly<{ ask: 'close' }>
  )

export type Reply = Readonly<{ call: number } & ({ value: Packed<unknown> } | { error: EncodedError })>
/** What the answer to a write holds, one per unit. */
export type EncodedOutcome = Readonly<{ results: unknown[] } | { error: EncodedError }>
/** The first thing a thread says. */
export type OpenReport = Readonly<{ isOpen: true } | { isOpen: false; error: EncodedError }>
export type ThreadData = Readonly<{
  path: string
  synchronous: 'full' | 'normal'
  /** For `Log`. */
  log: SharedArrayBuffer
}>

export type EncodedError = Readonly<{
  code: ErrorCode | null
  message: string
  publicMessage?: string
  stack: string
}>

/** A value in which bytes are replaced by their place in a block. */
export type Packed<T> = Readonly<{ value: unknown; block: Uint8Array; of?: T }>

const place = '\u0000at'
/**
 * The details of an audit row and the document of a campaign hold no bytes, and may have any key, also ours. Nor have the
 * values of letters any (sent-letters.ts), and there are many.
 */
const opaque = new Set(['details', 'document', 'values', 'causes'])
const isOpaque = (key: string): boolean => opaque.has(key)

export function pack<T>(value: T): Packed<T> {
  const chunks: Uint8Array[] = []
  let length = 0
  const walk = (part: unknown): unknown => {
    if (part === null || typeof part !== 'object') return part
    if (part instanceof Uint8Array) {
      chunks.push(part)
      length += part.byteLength
      return { [place]: length - part.byteLength, length: part.byteLength }
    }
    if (Array.isArray(part)) return part.map(walk)
    const copy: Record<string, unknown> = {}
    for (const key in part) {
      const inner = (part as Record<string, unknown>)[key]
      copy[key] = isOpaque(key) ? inner : walk(inner)
    }
    return copy
  }
  const packed = walk(value)
  const block = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    block.set(chunk, at)
    at += chunk.byteLength
  }
  return { value: packed, block }
}

export function unpack<T>({ value, block }: Packed<T>): T {
  const walk = (part: unknown): unknown => {
    if (part === null || typeof part !== 'object') return part
    if (Array.isArray(part)) {
      for (let index = 0; index < part.length; index++) part[index] = walk(part[index])
      return part
    }
    const record = part as Record<string, unknown>
    const at = record[place]
    if (typeof at === 'number') return block.subarray(at, at + (record.length as number))
    for (const key in record) {
      const inner = record[key]
      if (inner !== null && typeof inner === 'object' && !isOpaque(key)) record[key] = walk(inner)
    }
    return record
  }
  return walk(value) as T
}

export function encodeError(error: unknown): EncodedError {
  if (error instanceof KnownError)
    return {
      code: error.code,
      message: error.message,
      publicMessage: error.publicMessage,
      stack: error.stack ?? '',
    }
  if (error instanceof Error) return { code: null, message: error.message, stack: error.stack ?? '' }
  return { code: null, message: String(error), stack: '' }
}

export function decodeError(sent: EncodedError): Error {
  if (sent.code !== null) return new KnownError(sent.code, sent.message, undefined, sent.publicMessage)
  const error = new Error(sent.message)
  error.stack = sent.stack
  return error
}
