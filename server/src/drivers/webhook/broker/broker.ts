/**
 * The webhook broker: producers broadcast messages to channels, and each consumer of a channel gets a job for
 * each message. Pushing jobs to their consumers is the work of the dispatcher (drivers/webhook/dispatch).
 *
 * A consumer is a queue. So jobs are leased, completed and retried with the functions of the engine, under
 * the name `consumer.queue` and in partition 0. An item of such a queue has in `reference` the id of the job,
 * in `key` the id of the message, in `encoding` its content type; `readJobMessages` adds its bytes.
 */
import type { Header, Item } from '../../../core/items/item.ts'
import type { TraceContext } from '../../../core/trace/trace-context.ts'
import type { DeliveryRules } from '../../../core/webhook/delivery-policy.ts'
import type { ChangeCondition } from '../../../core/webhook/put.ts'
import type { Attribution } from '../../../engine/engine.ts'
import type {
  AcceptResult,
  Channel,
  Consumer,
  NewMessage,
  Producer,
  PutResult,
  WebhookResults,
} from '../../../storage/contract/webhooks.ts'
import type { PullJobs } from './pull-jobs.ts'

export interface WebhookBroker extends PullJobs {
  readonly rules: DeliveryRules
  putProducer(id: string, change: EntityChange): Promise<PutResult<Producer>>
  putChannel(id: string, change: EntityChange): Promise<PutResult<Channel>>
  putConsumer(channelId: string, id: string, change: ConsumerChange): Promise<PutResult<Consumer>>
  deleteConsumer(
    channelId: string,
    id: string,
    condition: ChangeCondition,
    attribution?: Attribution,
  ): Promise<WebhookResults['delete-consumer']>

  /** Stores the message; its jobs are created soon after. */
  broadcast(message: NewBroadcast): Promise<AcceptResult>

  /** The messages of jobs, in the order given. */
  readJobMessages(items: readonly Item[]): Promise<readonly JobMessage[]>

  /** A new id in the form of an xid. */
  createId(): string

  /** Makes regular messages of scheduled ones that are due. Returns whether more are due. */
  dispatchScheduled(countMax: number): Promise<boolean>
  /** Creates the jobs of messages that were left without them. Returns whether more wait. */
  recover(): Promise<boolean>
  close(): Promise<void>
}

/** Undefined fields have their defaults: a new token, the id as the name. */
export type EntityChange = Readonly<{
  name?: string
  token?: string
  condition: ChangeCondition
  attribution?: Attribution
}>
export type ConsumerChange = EntityChange & Readonly<{ callbackUrl: string; type: Consumer['type'] }>

/** `trace`: the span of the producer. */
export type NewBroadcast = Omit<NewMessage, 'xid'> & Readonly<{ trace?: TraceContext }>

/** Everything that a push of a job needs besides its consumer. */
export type JobMessage = Readonly<{
  /** The id of the job on the wire. */
  jobId: string
  messageId: string
  contentType: string
  priority: number
  /** The metadata headers. */
  headers: readonly Header[]
  payload: Uint8Array
}>
