/**
 * The mapping between items and rows that both stores share. The columns and the numbers of the states differ
 * between the stores: each has them in its own items/rows.ts.
 */
import { Buffer } from 'node:buffer'
import type { CampaignId } from '../../../core/ids/ids.ts'
import type {
  Failure,
  Header,
  Item,
  ItemBytes,
  ItemHead,
  ItemHeadBase,
  LetterFacts,
  ListedState,
  Origin,
  RedriveRecord,
} from '../../../core/items/item.ts'
import type { Instant } from '../../../core/time/instant.ts'

const noHeaders: readonly Header[] = []
const noHistory: readonly Failure[] = []

export function encodeHeaders(headers: readonly Header[]): string | null {
  if (headers.length === 0) return null
  let text = '['
  for (const [name, value] of headers) {
    text += `${text.length === 1 ? '' : ','}[${JSON.stringify(name)},${value === null ? 'null' : `"${encodeBase64(value)}"`}]`
  }
  return `${text}]`
}

function encodeBase64({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}

/** Null or undefined: the item has no headers, or they were not read. */
export function decodeHeaders(text: string | null | undefined): readonly Header[] {
  if (text === null || text === undefined) return noHeaders
  const pairs = JSON.parse(text) as readonly (readonly [string, string | null])[]
  return pairs.map(([name, value]) => [
    name,
    value === null ? null : new Uint8Array(Buffer.from(value, 'base64')),
  ])
}

/** Stored JSON keeps the names of its first version. These fields have another name in the code. */
type StoredFailure = Omit<Failure, 'errorCode'> & Readonly<{ reason: string }>

// Every captured, listed and settled letter passes here. Listing the fields costs half of a rest pattern.
function toStoredFailure(failure: Failure): StoredFailure {
  const { errorCode, errorClass, message, stack, attempts, firstFailedAt, lastFailedAt, worker, itemId } =
    failure
  const stored = {
    reason: errorCode,
    errorClass,
    message,
    stack,
    attempts,
    firstFailedAt,
    lastFailedAt,
    worker,
  }
  return itemId === undefined ? stored : { ...stored, itemId }
}

function toFailure(stored: StoredFailure): Failure {
  const { reason, errorClass, message, stack, attempts, firstFailedAt, lastFailedAt, worker, itemId } = stored
  const failure = {
    errorCode: reason,
    errorClass,
    message,
    stack,
    attempts,
    firstFailedAt,
    lastFailedAt,
    worker,
  }
  return itemId === undefined ? failure : { ...failure, itemId }
}

type StoredRecord = Omit<RedriveRecord, 'campaign'> &
  Readonly<{ campaign: Readonly<{ id: CampaignId; place: number }> | null }>
type StoredFacts = Omit<LetterFacts, 'requeueCount' | 'redrives'> &
  Readonly<{ requeues: number; redrives: readonly StoredRecord[] }>

/** As `encodeFacts`, also for a letter that nothing was done with. */
export function encodeAllFacts({ requeueCount, redrives, ...rest }: LetterFacts): string {
  const records = redrives.map(({ campaign, ...record }) => ({
    ...record,
    campaign: campaign && { id: campaign.id, place: campaign.position },
  }))
  const stored: StoredFacts = { requeues: requeueCount, redrives: records, ...rest }
  return JSON.stringify(stored)
}

function toFacts({ requeues, redrives, ...rest }: StoredFacts): LetterFacts {
  const records = redrives.map(({ campaign, ...record }) => ({
    ...record,
    campaign: campaign && { id: campaign.id, position: campaign.place },
  }))
  return { requeueCount: requeues, redrives: records, ...rest }
}

export function encodeFailure(failure: Failure | null): string | null {
  return failure && JSON.stringify(toStoredFailure(failure))
}

export function decodeFailure(text: string | null): Failure | null {
  return text === null ? null : toFailure(JSON.parse(text) as StoredFailure)
}

export function encodeOrigin(origin: Origin | null): string | null {
  return origin && JSON.stringify(origin)
}

export function decodeOrigin(text: string | null): Origin | null {
  return text === null ? null : (JSON.parse(text) as Origin)
}

export function encodeHistory(history: readonly Failure[]): string | null {
  return history.length === 0 ? null : JSON.stringify(history.map(toStoredFailure))
}

/** Null or undefined: there are no earlier failures, or they were not read. */
export function decodeHistory(text: string | null | undefined): readonly Failure[] {
  return text === null || text === undefined
    ? noHistory
    : (JSON.parse(text) as StoredFailure[]).map(toFailure)
}

const untouched: LetterFacts = {
  requeueCount: 0,
  lastRedriveAt: null,
  redrives: [],
  nextRedriveAt: null,
  discardReason: '',
}

/**
 * Null for a letter that nothing was done with, which is the case for most letters. Its `nextRedriveAt` must
 * then be stored elsewhere.
 */
export function encodeFacts(facts: LetterFacts): string | null {
  const { requeueCount, lastRedriveAt, redrives, discardReason, discardCampaign, restoredAt, wasDead } = facts
  const isUntouched =
    requeueCount === 0 &&
    lastRedriveAt === null &&
    redrives.length === 0 &&
    discardReason === '' &&
    discardCampaign === undefined &&
    restoredAt === undefined &&
    wasDead === undefined
  return isUntouched ? null : encodeAllFacts(facts)
}

export function decodeFacts(text: string | null, nextRedriveAt: Instant | null): LetterFacts {
  if (text !== null) return toFacts(JSON.parse(text) as StoredFacts)
  return nextRedriveAt === null ? untouched : { ...untouched, nextRedriveAt }
}

/**
 * The column `lease_deadline`: the deadline of the lease, or for an imported item that is not leased the
 * deadline that it was imported with.
 */
export function toLeaseDeadline(item: ItemHead): Instant | null {
  if (item.state === 'leased') return item.lease.deadline
  return item.state === 'waiting' ? (item.givenLeaseDeadline ?? null) : null
}

/** The columns that only some states have. */
export type StateColumns = Readonly<{
  availableAt: Instant | null
  leaseHolder: string | null
  leaseDeadline: Instant | null
  endedAt: Instant | null
}>

/**
 * Completes an item with the fields of its state. Columns that the state needs are never null in its rows.
 */
export function withState(
  base: Readonly<ItemHeadBase & ItemBytes>,
  state: ListedState,
  { availableAt, leaseHolder, leaseDeadline, endedAt }: StateColumns,
): Item {
  switch (state) {
    case 'waiting':
    case 'scheduled': {
      const waiting = { ...base, state: 'waiting', availableAt } as const
      return leaseDeadline === null ? waiting : { ...waiting, givenLeaseDeadline: leaseDeadline }
    }
    case 'leased':
      return { ...base, state, lease: { holder: leaseHolder ?? '', deadline: leaseDeadline ?? 0 } }
    case 'done':
    case 'dead':
    case 'discarded':
      return { ...base, state, endedAt: endedAt ?? 0 }
  }
}
