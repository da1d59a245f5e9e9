/**
 * The messages between the server and the threads of a SQLite store.
 *
 * All bytes of a message travel in one block. Cloning a small view would copy the whole buffer behind it, and
 * Node keeps small Buffers in a shared pool.
 */
import type { Instant } from '../../../core/time/instant.ts'
import { type ErrorCode, KnownError } from '../../../errors.ts'
import type { AccessQuery, CredentialRef } from '../../contract/access.ts'
import type { AlertConfigKind, AlertConfigsQuery, AlertsQuery } from '../../contract/alerts.ts'
import type { AuditQuery } from '../../contract/audit.ts'
import type { CampaignLettersQuery, CampaignsQuery } from '../../contract/campaigns.ts'
import type { CountsQuery, QueueCountsQuery, UsageQuery } from '../../contract/counts.ts'
import type { AttemptsQuery, FiguresQuery } from '../../contract/deliveries.ts'
import type { CausesQuery, GroupJobsQuery } from '../../contract/groups.ts'
import type { ItemsQuery } from '../../contract/items.ts'
import type { KafkaPositionsQuery, KafkaReplaysQuery, UnpassedPartitionsQuery } from '../../contract/kafka.ts'
import type {
  GroupsQuery,
  LetterCountsQuery,
  LetterLocation,
  RangesQuery,
  ScanBounds,
} from '../../contract/letters.ts'
import type { HeldLock } from '../../contract/locks.ts'
import type { QueuesQuery } from '../../contract/queues.ts'
import type {
  ConsumersQuery,
  JobLocation,
  MessagesQuery,
  PageQuery,
  PruneQuery,
  UndispatchedQuery,
} from '../../contract/webhooks.ts'
import type { WorkersQuery } from '../../contract/workers.ts'
import type { IndexRanges } from '../letters/index-ranges.ts'
import type { Write } from '../write.ts'

export type ReadCall =
  | Readonly<{ read: 'queue'; name: string }>
  | Readonly<{ read: 'lease-call'; name: string }>
  | Readonly<{ read: 'queue-deletions'; countMax: number }>
  | Readonly<{ read: 'queues'; query: QueuesQuery }>
  | Readonly<{ read: 'counts'; query: CountsQuery }>
  | Readonly<{ read: 'queue-counts'; query: QueueCountsQuery }>
  | Readonly<{ read: 'usage'; query: UsageQuery }>
  | Readonly<{ read: 'items'; query: ItemsQuery }>
  | Readonly<{ read: 'archive'; query: ItemsQuery }>
  | Readonly<{ read: 'audit'; query: AuditQuery }>
  | Readonly<{ read: 'audit-chain'; afterId: number; countMax: number }>
  | Readonly<{ read: 'audit-heads' }>
  | Readonly<{ read: 'letters-by-id'; letterIds: readonly string[]; bytes: 'head' | 'all' }>
  | Readonly<{ read: 'archived-letters-by-id'; letterIds: readonly string[] }>
  | Readonly<{ read: 'payload-sizes'; letterIds: readonly string[]; location: LetterLocation | undefined }>
  | Readonly<{ read: 'letter-namespaces'; letterIds: readonly string[] }>
  | Readonly<{ read: 'letters-by-uuid'; uuids: readonly string[] }>
  | Readonly<{ read: 'letter-ids'; ids: readonly string[] }>
  | Readonly<{ read: 'letter-ranges'; query: RangesQuery }>
  | Readonly<{ read: 'letter-scan'; ranges: IndexRanges; bounds: ScanBounds }>
  | Readonly<{ read: 'letter-counts'; query: LetterCountsQuery }>
  | Readonly<{ read: 'oldest-open'; queues: readonly string[] }>
  | Readonly<{ read: 'open-since'; since: Instant; queues: readonly string[] | undefined }>
  | Readonly<{ read: 'groups'; query: GroupsQuery }>
  | Readonly<{ read: 'group-labels'; groupIds: readonly number[] }>
  | Readonly<{ read: 'causes'; query: CausesQuery }>
  | Readonly<{ read: 'group-job'; id: string }>
  | Readonly<{ read: 'group-jobs'; query: GroupJobsQuery }>
  | Readonly<{ read: 'group-notices'; countMax: number }>
  | Readonly<{ read: 'cause-key'; causeKey: string }>
  | Readonly<{ read: 'group-arrivals'; groupIds: readonly number[]; since: Instant }>
  | Readonly<{ read: 'edits'; letterId: string }>
  | Readonly<{ read: 'campaign'; id: string }>
  | Readonly<{ read: 'campaigns'; query: CampaignsQuery }>
  | Readonly<{ read: 'campaign-letters'; query: CampaignLettersQuery }>
  | Readonly<{ read: 'access-state' }>
  | Readonly<{ read: 'access'; query: AccessQuery }>
  | Readonly<{ read: 'holder'; credential: CredentialRef }>
  | Readonly<{ read: 'producer' | 'channel'; id: string }>
  | Readonly<{ read: 'consumer' | 'message' | 'scheduled'; channelId: string; id: string }>
  | Readonly<{ read: 'consumers-by-queue'; queues: readonly string[] }>
  | Readonly<{ read: 'producers' | 'channels'; page: PageQuery }>
  | Readonly<{ read: 'consumers'; query: ConsumersQuery }>
  | Readonly<{ read: 'consumer-counts'; channelId: string | undefined }>
  | Readonly<{ read: 'messages' | 'consumers-by-number' | 'job-times'; numbers: readonly number[] }>
  | Readonly<{ read: 'channel-messages' | 'scheduled-messages'; query: MessagesQuery }>
  | Readonly<{ read: 'message-counts'; channelId: string }>
  | Readonly<{ read: 'queued-items'; queue: string; countMax: number }>
  | Readonly<{ read: 'undispatched'; query: UndispatchedQuery }>
  | Readonly<{ read: 'prunable-messages'; query: PruneQuery }>
  | Readonly<{ read: 'configuration-checksum' }>
  | Readonly<{ read: 'jobs'; jobs: readonly JobLocation[] }>
  | Readonly<{ read: 'kafka-positions'; query: KafkaPositionsQuery }>
  | Readonly<{ read: 'kafka-replays'; query: KafkaReplaysQuery }>
  | Readonly<{ read: 'unpassed-kafka-partitions'; query: UnpassedPartitionsQuery }>
  | Readonly<{ read: 'deliveries'; changedSince: Instant | undefined }>
  | Readonly<{ read: 'delivery'; channelId: string; consumerId: string }>
  | Readonly<{ read: 'attempts'; query: AttemptsQuery }>
  | Readonly<{ read: 'delivery-figures'; query: FiguresQuery }>
  | Readonly<{ read: 'delivery-writers'; since: Instant }>
  | Readonly<{ read: 'workers'; query: WorkersQuery }>
  | Readonly<{ read: 'watch-records' }>
  | Readonly<{ read: 'alert-configs'; query: AlertConfigsQuery }>
  | Readonly<{ read: 'alert-config'; kind: AlertConfigKind; name: string }>
  | Readonly<{ read: 'alert'; id: string }>
  | Readonly<{ read: 'alerts'; query: AlertsQuery }>
  | Readonly<{ read: 'alert-counts' }>
  | Readonly<{ read: 'next-due' }>
  /** `isRepairableOnly`: only the counts that `reconcile` can correct. */
  | Readonly<{ read: 'verify'; isRepairableOnly: boolean }>

export type Request = Readonly<{ call: number }> &
  (
    | Readonly<{ ask: 'write'; write: Packed<Write>; now: number; isBackground: boolean }>
    | Readonly<{ ask: 'read'; what: ReadCall }>
    | Readonly<{ ask: 'reconcile'; lock: HeldLock | undefined; now: number }>
    /** Rejects with STORE_FULL while the disk is full. */
    | Readonly<{ ask: 'check-space' }>
    /** Removes counts per hour and minute that are older than their retention. */
    | Readonly<{ ask: 'trim'; now: number }>
    | Readonly<{ ask: 'close' }>
  )

export type Reply = Readonly<{ call: number } & ({ value: Packed<unknown> } | { error: EncodedError })>
/** The first message of a thread. */
export type OpenReport = Readonly<{ isOpen: true } | { isOpen: false; error: EncodedError }>
export type ThreadData = Readonly<{
  path: string
  synchronous: 'full' | 'normal'
  /** How long the writer waits for a file that another server has open. */
  lockWaitMs: number
  /** The memory of `WalState`. */
  wal: SharedArrayBuffer
}>

export type EncodedError = Readonly<{
  code: ErrorCode | null
  message: string
  publicMessage?: string
  stack: string
}>

/** A value whose byte arrays are replaced by references into one block. */
export type Packed<T> = Readonly<{ value: unknown; block: Uint8Array<ArrayBuffer>; of?: T }>

/** The key that marks a reference into the block. */
const offsetKey = '\u0000at'
/**
 * Fields without bytes in them, which are not searched. Audit details and campaign documents can have any
 * key, also `offsetKey`. The values of encoded letters (capture-encoding.ts) are many.
 */
const opaqueFields = new Set(['details', 'document', 'values', 'causes'])
const isOpaque = (field: string): boolean => opaqueFields.has(field)

export function pack<T>(value: T): Packed<T> {
  const chunks: Uint8Array[] = []
  let length = 0
  const walk = (part: unknown): unknown => {
    if (part === null || typeof part !== 'object') return part
    if (part instanceof Uint8Array) {
      chunks.push(part)
      length += part.byteLength
      return { [offsetKey]: length - part.byteLength, length: part.byteLength }
    }
    return Array.isArray(part) ? part.map(walk) : copyFields(part as Record<string, unknown>, walk)
  }
  const packed = walk(value)
  return { value: packed, block: concatenate(chunks, length) }
}

function copyFields(
  record: Readonly<Record<string, unknown>>,
  walk: (part: unknown) => unknown,
): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  for (const field in record) copy[field] = isOpaque(field) ? record[field] : walk(record[field])
  return copy
}

/** Joins byte arrays into one block of `length` bytes. */
export function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    block.set(chunk, at)
    at += chunk.byteLength
  }
  return block
}

/** Restores a packed value. The value is changed in place, because the message belongs to the receiver. */
export function unpack<T>({ value, block }: Packed<T>): T {
  const walk = (part: unknown): unknown => {
    if (part === null || typeof part !== 'object') return part
    if (!Array.isArray(part)) return unpackFields(part as Record<string, unknown>)
    for (let index = 0; index < part.length; index++) part[index] = walk(part[index])
    return part
  }
  const unpackFields = (record: Record<string, unknown>): unknown => {
    const offset = record[offsetKey]
    if (typeof offset === 'number') return block.subarray(offset, offset + (record.length as number))
    for (const field in record) {
      const inner = record[field]
      if (inner !== null && typeof inner === 'object' && !isOpaque(field)) record[field] = walk(inner)
    }
    return record
  }
  return walk(value) as T
}

/** The memory of a reply that changes its owner instead of being copied. */
export function listMoved(reply: Reply | OpenReport): ArrayBuffer[] {
  return 'value' in reply ? [reply.value.block.buffer] : []
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
