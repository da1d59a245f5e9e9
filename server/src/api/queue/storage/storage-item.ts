import { create } from '@bufbuild/protobuf'
import type { Item } from '../../../core/items/item.ts'
import type { ImportResult, ItemToImport } from '../../../storage/contract/items.ts'
import { checkNoNul } from '../checks/names.ts'
import { type StorageItem, StorageItemSchema } from '../generated/redrive/queue/v1/queue_pb.ts'
import { toInstant, toTimestamp, toTimestampOrZero } from '../protocol/times.ts'

export function toStorageItem(item: Item): StorageItem {
  const scheduledFor = item.state === 'waiting' ? item.availableAt : null
  return create(StorageItemSchema, {
    id: item.id,
    sourceId: item.sourceId ?? '',
    isLeased: item.state === 'leased',
    leaseDeadline: toTimestampOrZero(findLeaseDeadline(item)),
    expireDeadline: toTimestamp(item.expireDeadline),
    createdAt: toTimestamp(item.createdAt),
    ...(scheduledFor !== null && { enqueueAt: toTimestamp(scheduledFor) }),
    attempts: item.attempts,
    maxAttempts: item.attemptsMax,
    reference: item.reference,
    encoding: item.encoding,
    kind: item.kind,
    payload: item.payload,
  })
}

function findLeaseDeadline(item: Item): number | null {
  if (item.state === 'leased') return item.lease.deadline
  return item.state === 'waiting' ? (item.givenLeaseDeadline ?? null) : null
}

/** The holder of an item that was imported as leased, because the request does not name one. */
const unknownHolder = 'imported'

export function toItemToImport(item: StorageItem): ItemToImport {
  checkNoNul('source_id', item.sourceId)
  checkNoNul('reference', item.reference)
  checkNoNul('encoding', item.encoding)
  checkNoNul('kind', item.kind)
  const expireDeadline = toInstant(item.expireDeadline)
  const deadline = toInstant(item.leaseDeadline)
  return {
    payload: item.payload,
    kind: item.kind,
    encoding: item.encoding,
    reference: item.reference,
    sourceId: item.sourceId === '' ? null : item.sourceId,
    attempts: Math.max(item.attempts, 0),
    attemptsMax: Math.max(item.maxAttempts, 0),
    // A lease without a deadline has ended.
    ...(item.isLeased && { lease: { holder: unknownHolder, deadline: deadline ?? 0 } }),
    ...(deadline !== null && { givenLeaseDeadline: deadline }),
    ...(expireDeadline !== null && { expireDeadline }),
  }
}

/** Returns an imported item for the answer. A skipped item is returned as it was given. */
export function createEcho(given: StorageItem, { id, createdAt, expireDeadline }: ImportResult): StorageItem {
  const isStored = id !== null
  return create(StorageItemSchema, {
    id: isStored ? id : given.id,
    sourceId: given.sourceId,
    isLeased: given.isLeased,
    // Converted to instants and back, because protobuf can express times that JSON cannot.
    leaseDeadline: toTimestampOrZero(toInstant(given.leaseDeadline)),
    expireDeadline: toTimestampOrZero(isStored ? expireDeadline : toInstant(given.expireDeadline)),
    createdAt: toTimestampOrZero(isStored ? createdAt : toInstant(given.createdAt)),
    attempts: given.attempts,
    maxAttempts: given.maxAttempts,
    reference: given.reference,
    encoding: given.encoding,
    kind: given.kind,
    payload: given.payload,
  })
}
