/**
 * Webhooks: producers, channels and consumers, the messages of a channel, and their jobs.
 *
 * The queue of a consumer holds its jobs as items, and its dead queue holds the dead jobs as letters, so
 * leases, retries, deaths, redrives and counts are those of queues. Webhooks add to them:
 *
 * - A message is stored once. The item of a job has the number of its message and no payload. A job that dies
 *   takes the payload and the headers of its message along, because letters outlive messages.
 * - The fan-out creates all jobs of a message and sets it to DISPATCHED, in one transaction. The message
 *   keeps the list of its jobs, and the id of a job (core/webhook/job-id.ts) is a position in that list.
 * - A job keeps the id of its item (`delivery` in core/items/queue.ts). The item of a redriven job is named
 *   by its letter.
 */
import type { ItemId, LetterId, QueueName } from '../../core/ids/ids.ts'
import type { Failure, Header, Item } from '../../core/items/item.ts'
import type { Delivery } from '../../core/items/queue.ts'
import type { Instant } from '../../core/time/instant.ts'
import type { BroadcastRefusal, BroadcastTokens } from '../../core/webhook/broadcast.ts'
import type { DeliveryRules } from '../../core/webhook/delivery-policy.ts'
import type { PageCursor } from '../../core/webhook/page-cursor.ts'
import type { ChangeCondition, ConditionRefusal } from '../../core/webhook/put.ts'
import type { AuditContext } from './audit.ts'

export type WebhookCommand =
  | PutProducer
  | PutChannel
  | PutConsumer
  | DeleteConsumer
  | AcceptMessages
  | DispatchMessages
  | DispatchScheduled
  | PruneMessages
  | RecordConfiguration
  | TakeJob

export type WebhookResults = {
  'put-producer': PutResult<Producer>
  'put-channel': PutResult<Channel>
  'put-consumer': PutResult<Consumer>
  'delete-consumer': { refusal: 'missing' | 'has-jobs' | ConditionRefusal | null }
  'accept-messages': readonly AcceptResult[]
  'dispatch-messages': DispatchResult
  'dispatch-scheduled': { numbers: readonly number[]; isMore: boolean }
  'prune-messages': { removed: readonly number[] }
  'record-configuration': undefined
  'take-job': { isTaken: boolean }
}

export interface WebhookStore {
  getProducer(id: string): Promise<Producer | null>
  getChannel(id: string): Promise<Channel | null>
  getConsumer(channelId: string, id: string): Promise<Consumer | null>
  /** The consumers of these queues. Other queues are left out. */
  listConsumersByQueue(queues: readonly QueueName[]): Promise<readonly Consumer[]>
  /** Newest first. */
  listProducers(page: PageQuery): Promise<readonly Producer[]>
  listChannels(page: PageQuery): Promise<readonly Channel[]>
  listConsumers(query: ConsumersQuery): Promise<readonly Consumer[]>
  /** In any order. */
  listConsumersByNumber(numbers: readonly number[]): Promise<readonly Consumer[]>
  /** All consumers with the counts of their jobs, or those of one channel. The cost is O(consumers). */
  listConsumerCounts(channelId?: string): Promise<readonly ConsumerCounts[]>
  /** In any order. Messages that do not exist are left out. */
  readMessages(numbers: readonly number[]): Promise<readonly Message[]>
  getMessage(channelId: string, id: string): Promise<Message | null>
  /** Newest first. Rejects nothing: a channel that does not exist has no messages. */
  listMessages(query: MessagesQuery): Promise<readonly MessageHead[]>
  listScheduled(query: MessagesQuery): Promise<readonly MessageHead[]>
  getScheduled(channelId: string, id: string): Promise<ScheduledMessage | null>
  countMessages(channelId: string): Promise<MessageCounts>
  /** The numbers of messages without jobs, oldest first. */
  listUndispatched(query: UndispatchedQuery): Promise<readonly number[]>
  /** Messages that can be looked at for pruning, in the order of their turns. */
  listPrunable(query: PruneQuery): Promise<readonly PrunableMessage[]>
  /** Null: nothing was configured so far. */
  readConfigurationChecksum(): Promise<string | null>
  /** The queued jobs of a queue, without their bytes, by priority, then age. */
  listQueuedItems(query: Readonly<{ queue: QueueName; countMax: number }>): Promise<readonly Item[]>
  /**
   * When the jobs of each consumer last changed their state. Read at the ends of indexes, so the cost does
   * not depend on the number of jobs.
   */
  readJobTimes(consumerNumbers: readonly number[]): Promise<readonly JobTimes[]>
  /** The states of jobs, in the order given. */
  readJobs(jobs: readonly JobLocation[]): Promise<readonly JobState[]>
}

/** `xid`: the id in page cursors. `changedAt` is in whole seconds. */
type Entity = Readonly<{
  id: string
  name: string
  token: string
  xid: string
  createdAt: Instant
  changedAt: Instant
}>
export type Producer = Entity
export type Channel = Entity
export type Consumer = Entity &
  Readonly<{
    /** Stays the same while the consumer exists, and is never used again. */
    number: number
    channelId: string
    callbackUrl: string
    type: Delivery
    queue: QueueName
    deadQueue: QueueName
  }>

/**
 * From newest to oldest: the rows after `olderThan`, or the rows directly before `newerThan`, or the first.
 */
export type PageQuery = Readonly<{ olderThan?: PageCursor; newerThan?: PageCursor; countMax: number }>
export type ConsumersQuery = PageQuery & Readonly<{ channelId: string }>

type PutEntity = Readonly<{
  id: string
  name: string
  token: string
  /** The id in page cursors, if the row is created. */
  xid: string
  condition: ChangeCondition
  now: Instant
  /** The audit row never has the token. */
  audit?: AuditContext
}>
export type PutProducer = PutEntity & Readonly<{ op: 'put-producer' }>
export type PutChannel = PutEntity & Readonly<{ op: 'put-channel' }>
/** Creates the queue and the dead queue of a new consumer. A change of the type changes its queue. */
export type PutConsumer = PutEntity &
  Readonly<{
    op: 'put-consumer'
    channelId: string
    callbackUrl: string
    type: Delivery
    rules: DeliveryRules
  }>
export type PutResult<T> = Readonly<
  { outcome: 'created' | 'updated' | 'unchanged'; row: T } | { outcome: ConditionRefusal | 'channel-missing' }
>

/** Deletes the consumer with its queues, unless it still has jobs. Discarded jobs do not count. */
export type DeleteConsumer = Readonly<{
  op: 'delete-consumer'
  channelId: string
  id: string
  condition: ChangeCondition
  now: Instant
  audit?: AuditContext
}>

/**
 * Stores messages, each once per channel and id. The messages of one command are checked one by one. The
 * number of a scheduled message is null.
 */
export type AcceptMessages = Readonly<{
  op: 'accept-messages'
  messages: readonly NewMessage[]
  now: Instant
}>
export type NewMessage = BroadcastTokens &
  Readonly<{
    channelId: string
    id: string
    xid: string
    contentType: string
    priority: number
    /** The metadata headers. */
    headers: readonly Header[]
    payload: Uint8Array
    /** When a scheduled message becomes a regular one; null: the message is a regular one now. */
    dueAt: Instant | null
  }>
export type AcceptResult = Readonly<
  { isAccepted: true; number: number | null } | { isAccepted: false; refusal: BroadcastRefusal }
>

/**
 * Creates the jobs of these messages for the consumers that their channels have now, and sets the messages to
 * DISPATCHED. Messages that are dispatched already, or that another server dispatches now, are skipped.
 */
export type DispatchMessages = Readonly<{
  op: 'dispatch-messages'
  numbers: readonly number[]
  now: Instant
}>
/** `jobs`: the number of new jobs in each queue. */
export type DispatchResult = Readonly<{
  dispatched: readonly number[]
  jobs: readonly Readonly<{ queue: QueueName; count: number }>[]
}>

/**
 * Makes regular messages of scheduled ones that are due, oldest first. A scheduled message whose id a regular
 * message has in the meantime just becomes DISPATCHED.
 */
export type DispatchScheduled = Readonly<{ op: 'dispatch-scheduled'; now: Instant; countMax: number }>

/**
 * Removes messages whose jobs are all delivered or deleted, with their jobs. Other messages of `numbers`
 * stay. `postponed`: messages that cannot be pruned now, and their next turns.
 */
export type PruneMessages = Readonly<{
  op: 'prune-messages'
  numbers: readonly number[]
  postponed: readonly Readonly<{ number: number; pruneAt: Instant }>[]
}>
/** `before`: for the first time, this is compared with the time at which the message was stored. */
export type PruneQuery = Readonly<{ before: Instant; countMax: number }>
export type PrunableMessage = Readonly<{ number: number; createdAt: Instant; payloadBytes: number }>

/** The configured producers, channels and consumers were stored. */
export type RecordConfiguration = Readonly<{ op: 'record-configuration'; checksum: string; now: Instant }>

/**
 * Leases one job for a pull consumer: a queued job by its item, or a dead job by its letter, which starts a
 * redrive. Takes nothing if the job has another state.
 */
export type TakeJob = Readonly<{
  op: 'take-job'
  queue: QueueName
  job: Readonly<{ itemId: ItemId } | { letterId: LetterId; attempts: number; actor: string }>
  holder: string
  deadline: Instant
  now: Instant
  audit?: AuditContext
}>

export type MessageHead = Readonly<{ id: string; xid: string; createdAt: Instant }>
/** `statuses`: 101 and 102; empty: both. */
export type MessagesQuery = PageQuery & Readonly<{ channelId: string; statuses: readonly number[] }>
/** `nextScheduledAt`: when the next scheduled message is due. */
export type MessageCounts = Readonly<{
  acknowledged: number
  dispatched: number
  scheduled: number
  scheduledDispatched: number
  nextScheduledAt: Instant | null
}>

export type ScheduledMessage = Readonly<
  Omit<Message, 'jobs' | 'receivedAt' | 'producerName'> & { createdAt: Instant; dueAt: Instant }
>

export type Message = Readonly<{
  number: number
  channelId: string
  id: string
  xid: string
  producerId: string
  producerName: string
  contentType: string
  priority: number
  headers: readonly Header[]
  payload: Uint8Array
  receivedAt: Instant
  /** Null: the message has no jobs yet (ACKNOWLEDGED). */
  dispatchedAt: Instant | null
  /** In the order of the fan-out. */
  jobs: readonly JobLocation[]
}>

/** Where a job was created: the number of its consumer, and the id of its item. */
export type JobLocation = Readonly<{ consumerNumber: number; itemId: ItemId }>

/** Without `before`: all of them. */
export type UndispatchedQuery = Readonly<{ before?: Instant; countMax: number }>

export type TimeRange = Readonly<{ oldestAt: Instant; newestAt: Instant }>
/** Null: there is no such job. */
export type JobTimes = Readonly<{ consumerNumber: number } & Record<JobStateName, TimeRange | null>>

export const jobStates = ['queued', 'inflight', 'delivered', 'dead'] as const
export type JobStateName = (typeof jobStates)[number]

/** Null: the job was deleted. */
export type JobState = Readonly<{
  state: JobStateName
  changedAt: Instant
  /** The present item of the job. A redrive has an item of its own. Null: the job is dead or done. */
  item: Readonly<{ id: ItemId; attempts: number; leaseHolder: string | null }> | null
  /** The letter of a job that died. */
  letterId: LetterId | null
  failure: Failure | null
}> | null

/** A consumer with the name of its channel and the exact counts of its jobs. */
export type ConsumerCounts = Readonly<{
  consumer: Consumer
  channelName: string
  queued: number
  inflight: number
  delivered: number
  dead: number
  /** Whether a job of it ever died. */
  hadDead: boolean
}>
