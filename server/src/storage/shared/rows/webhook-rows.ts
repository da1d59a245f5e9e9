/** The rows of the tables of webhooks, which have the same columns in both stores. */

import { isRedriving } from '../../../core/dead-letters/letter.ts'
import { type Header, type Item, type ItemHead, toListedState } from '../../../core/items/item.ts'
import type { Delivery } from '../../../core/items/queue.ts'
import type {
  Channel,
  Consumer,
  ConsumerCounts,
  JobLocation,
  JobState,
  Message,
  MessageCounts,
  MessageHead,
  MessagesQuery,
  PageQuery,
  Producer,
  PrunableMessage,
  ScheduledMessage,
  TimeRange,
} from '../../contract/webhooks.ts'
import { decodeHeaders } from '../items/item-row.ts'
import {
  type DatabaseRow,
  readBytes,
  readNumber,
  readNumberOrNull,
  readText,
  readTextOrNull,
} from './row-values.ts'

/** The column `status` of messages. */
export const messageStatus = { acknowledged: 101, dispatched: 102 } as const
/** The column `status` of scheduled messages. */
export const scheduledStatus = { scheduled: 101, dispatched: 102 } as const
/** Added to the status of a scheduled message in the table of counts. */
export const scheduledCountOffset = 100

export function toProducer(row: DatabaseRow): Producer {
  return {
    id: readText(row, 'id'),
    name: readText(row, 'name'),
    token: readText(row, 'token'),
    xid: readText(row, 'xid'),
    createdAt: readNumber(row, 'created_at'),
    changedAt: readNumber(row, 'changed_at'),
  }
}

export function toChannel(row: DatabaseRow): Channel {
  return toProducer(row)
}

/** From a row of the consumer with the column `channel_id`. */
export function toConsumer(row: DatabaseRow): Consumer {
  return {
    ...toProducer(row),
    number: readNumber(row, 'number'),
    channelId: readText(row, 'channel_id'),
    callbackUrl: readText(row, 'callback_url'),
    type: readText(row, 'type') as Delivery,
    queue: readText(row, 'queue'),
    deadQueue: readText(row, 'dead_queue'),
  }
}

/** From a row with `channel_name` and the sums of the counts of both queues. */
export function toConsumerCounts(row: DatabaseRow): ConsumerCounts {
  return {
    consumer: toConsumer(row),
    channelName: readText(row, 'channel_name'),
    queued: readNumber(row, 'queued'),
    inflight: readNumber(row, 'inflight'),
    delivered: readNumber(row, 'delivered'),
    dead: readNumber(row, 'dead'),
    hadDead: readNumber(row, 'died') > 0,
  }
}

/** Whether a job does not keep its message: it was delivered, or deleted. */
export function isPrunableState(state: JobState): boolean {
  return state === null || state.state === 'delivered'
}

export function toPrunable(row: DatabaseRow): PrunableMessage {
  return {
    number: readNumber(row, 'number'),
    createdAt: readNumber(row, 'created_at'),
    payloadBytes: readNumber(row, 'bytes'),
  }
}

/** From a row of the message with the columns `channel_id` and `producer_name`. */
export function toMessage(row: DatabaseRow): Message {
  return {
    number: readNumber(row, 'number'),
    channelId: readText(row, 'channel_id'),
    id: readText(row, 'id'),
    xid: readText(row, 'xid'),
    producerId: readText(row, 'producer'),
    producerName: readTextOrNull(row, 'producer_name') ?? '',
    contentType: readText(row, 'content_type'),
    priority: readNumber(row, 'priority'),
    headers: decodeHeaders(readTextOrNull(row, 'headers')) as readonly Header[],
    payload: readBytes(row, 'payload'),
    receivedAt: readNumber(row, 'created_at'),
    dispatchedAt: readNumberOrNull(row, 'dispatched_at'),
    jobs: jobsFromText(readTextOrNull(row, 'jobs')),
  }
}

export function jobsToText(jobs: readonly JobLocation[]): string {
  return JSON.stringify(jobs.map(({ consumerNumber, itemId }) => [consumerNumber, itemId]))
}

/** From a row of the scheduled message with the column `channel_id`. */
export function toScheduled(row: DatabaseRow): ScheduledMessage {
  return {
    number: readNumber(row, 'number'),
    channelId: readText(row, 'channel_id'),
    id: readText(row, 'id'),
    xid: readText(row, 'xid'),
    producerId: readText(row, 'producer'),
    contentType: readText(row, 'content_type'),
    priority: readNumber(row, 'priority'),
    headers: decodeHeaders(readTextOrNull(row, 'headers')),
    payload: readBytes(row, 'payload'),
    createdAt: readNumber(row, 'created_at'),
    dueAt: readNumber(row, 'due_at'),
    dispatchedAt: readNumberOrNull(row, 'dispatched_at'),
  }
}

export function toMessageHead(row: DatabaseRow): MessageHead {
  return { id: readText(row, 'id'), xid: readText(row, 'xid'), createdAt: readNumber(row, 'created_at') }
}

/** `counted`: status and number, as in the table of counts. */
export function toMessageCounts(
  counted: readonly (readonly [status: number, n: number])[],
  nextScheduledAt: number | null,
): MessageCounts {
  const sum = (status: number) => counted.reduce((total, [each, n]) => total + (each === status ? n : 0), 0)
  return {
    acknowledged: sum(messageStatus.acknowledged),
    dispatched: sum(messageStatus.dispatched),
    scheduled: sum(scheduledStatus.scheduled + scheduledCountOffset),
    scheduledDispatched: sum(scheduledStatus.dispatched + scheduledCountOffset),
    nextScheduledAt,
  }
}

/** The statuses that a query lists. Each of them is a range of an index, and the ranges are merged. */
export function listedStatuses({ statuses }: Pick<MessagesQuery, 'statuses'>): readonly number[] {
  const all: readonly number[] = Object.values(messageStatus)
  return statuses.length === 0 ? all : all.filter((status) => statuses.includes(status))
}

/** Merges pages of several ranges into one page from newest to oldest. */
export function mergePages(pages: readonly (readonly MessageHead[])[], page: PageQuery): MessageHead[] {
  const rows = pages.flat().sort(compareNewestFirst)
  const isBackwards = page.olderThan === undefined && page.newerThan !== undefined
  return isBackwards ? rows.slice(-page.countMax) : rows.slice(0, page.countMax)
}

function compareNewestFirst(left: MessageHead, right: MessageHead): number {
  if (left.createdAt !== right.createdAt) return right.createdAt - left.createdAt
  return left.xid < right.xid ? 1 : -1
}

export function jobsFromText(text: string | null): readonly JobLocation[] {
  if (text === null) return []
  const pairs = JSON.parse(text) as readonly (readonly [number, string])[]
  return pairs.map(([consumerNumber, itemId]) => ({ consumerNumber, itemId }))
}

/** The order and the bounds of a page. The rows of a page before a position must be reversed. */
export type PageBounds = Readonly<{
  /** A condition on `created_at` and `xid` with two parameters; empty: from the newest row. */
  condition: string
  values: readonly (string | number)[]
  order: string
  isReversed: boolean
}>

/** `parameter`: the text of the parameter number n of the condition, from 0. */
export function boundPage(
  { olderThan, newerThan }: PageQuery,
  alias: string,
  parameter: (n: number) => string,
): PageBounds {
  const columns = `(${alias}.created_at, ${alias}.xid)`
  const newestFirst = `${alias}.created_at desc, ${alias}.xid desc`
  const toValues = ({ createdAt, id }: { createdAt: number; id: string }) => [createdAt, id]
  if (olderThan !== undefined) {
    const condition = `and ${columns} < (${parameter(0)}, ${parameter(1)})`
    return { condition, values: toValues(olderThan), order: newestFirst, isReversed: false }
  }
  if (newerThan !== undefined) {
    const condition = `and ${columns} > (${parameter(0)}, ${parameter(1)})`
    const order = `${alias}.created_at, ${alias}.xid`
    return { condition, values: toValues(newerThan), order, isReversed: true }
  }
  return { condition: '', values: [], order: newestFirst, isReversed: false }
}

/**
 * The state of a job. `item`: the item that was created with the job, or the item of the redrive in progress.
 * `letter`: the letter of a job that died.
 */
export function toJobState(item: ItemHead | undefined, letter: ItemHead | undefined): JobState {
  if (letter === undefined) return item === undefined ? null : stateOfItem(item, null)
  const { rootId: letterId, failure, updatedAt: changedAt } = letter
  const base = { changedAt, item: null, letterId, failure }
  if (letter.state === 'discarded') return null
  if (letter.state === 'done') return { ...base, state: 'delivered' }
  if (!isRedriving(letter)) return { ...base, state: 'dead' }
  // Without its item the letter was sent to another queue, where nobody can see how far it got.
  return item === undefined ? { ...base, state: 'inflight' } : stateOfItem(item, letterId)
}

function stateOfItem(item: ItemHead, letterId: string | null): JobState {
  const { id, attempts, failure, updatedAt: changedAt } = item
  const states = {
    waiting: 'queued',
    scheduled: 'queued',
    leased: 'inflight',
    done: 'delivered',
    dead: 'dead',
    discarded: 'dead',
  } as const
  const state = states[toListedState(item)]
  const leaseHolder = item.state === 'leased' ? item.lease.holder : null
  const isOpen = state === 'queued' || state === 'inflight'
  return { state, changedAt, item: isOpen ? { id, attempts, leaseHolder } : null, letterId, failure }
}

/** From a row with the columns `oldest` and `newest`, which are null if there is no job. */
export function toTimeRange(row: DatabaseRow): TimeRange | null {
  const oldestAt = readNumberOrNull(row, 'oldest')
  const newestAt = readNumberOrNull(row, 'newest')
  return oldestAt === null || newestAt === null ? null : { oldestAt, newestAt }
}

export function joinTimeRanges(left: TimeRange | null, right: TimeRange | null): TimeRange | null {
  if (left === null || right === null) return left ?? right
  return {
    oldestAt: Math.min(left.oldestAt, right.oldestAt),
    newestAt: Math.max(left.newestAt, right.newestAt),
  }
}

/** Queued jobs by priority, then age. */
export function orderQueuedItems(items: readonly Item[], countMax: number): Item[] {
  return items
    .toSorted((left, right) => right.priority - left.priority || (left.id < right.id ? -1 : 1))
    .slice(0, countMax)
}
