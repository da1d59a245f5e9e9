import { randomBytes, randomInt } from 'node:crypto'
import { createXidGenerator } from '../../../core/ids/xid.ts'
import type { Item } from '../../../core/items/item.ts'
import type { Clock } from '../../../core/time/instant.ts'
import type { Tracing } from '../../../core/trace/tracing.ts'
import { type DeliveryRules, defaultDeliveryRules } from '../../../core/webhook/delivery-policy.ts'
import { parseJobId, textOfKey } from '../../../core/webhook/job-id.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import type { AcceptResult, NewMessage } from '../../../storage/contract/webhooks.ts'
import { BatchLane, handleOneByOne } from '../../../storage/shared/batch-lane.ts'
import type { EntityChange, JobMessage, NewBroadcast, WebhookBroker } from './broker.ts'
import { createToken } from './create-token.ts'
import { createFanOut, type FanOut } from './fan-out.ts'
import { createMessageCache, type MessageBytes, type MessageCache } from './message-cache.ts'
import { createPullJobs } from './pull-jobs.ts'
import { traceBroadcasts } from './trace-broadcast.ts'

export type BrokerParts = Readonly<{
  storage: () => StoreReads
  engine: () => Engine
  clock: Clock
  rules?: DeliveryRules
  /** Undefined: no spans are created. */
  tracing?: Tracing
  onError?(error: unknown): void
}>

/** Weights of the lane of broadcasts are in bytes. */
const batchBytesMax = 8 * 2 ** 20
/** The weight of a message besides its payload. */
const messageWeight = 16 * 1_024

export function createBroker(parts: BrokerParts): WebhookBroker {
  const { storage, engine, clock, rules = defaultDeliveryRules, onError = () => {} } = parts
  const nextId = createXidGenerator({
    machine: randomBytes(3),
    processId: process.pid,
    counterStart: randomInt(2 ** 24),
  })
  const createId = () => nextId(clock.now())
  const cache = createMessageCache(storage)
  const fanOut = createFanOut({ storage, engine, clock, delayUs: rules.rationalDelayUs, onError })
  const lane = createBroadcastLane(parts, cache, fanOut)
  const toEntity = (action: string, id: string, { name, token, condition, attribution }: EntityChange) => {
    const now = clock.now()
    const given = { id, name: name ?? id, token: token ?? createToken() }
    const audit = attribution === undefined ? {} : { audit: { at: now, ...attribution, action, details: {} } }
    return { ...given, xid: createId(), condition, now, ...audit } as const
  }
  const broadcast = ({ trace: _, ...message }: NewBroadcast) =>
    new Promise<AcceptResult>((resolve, reject) => {
      const weight = messageWeight + message.payload.byteLength
      lane.add({ weight, message: { ...message, xid: createId() }, resolve, reject })
    })
  const readMessagesOf = (items: readonly Item[]) => readJobMessages(cache, items)
  return {
    rules,
    createId,
    ...createPullJobs({ storage, engine, clock, rules, readJobMessages: readMessagesOf }),
    putProducer: async (id, change) =>
      (await engine().write([{ op: 'put-producer', ...toEntity('producer.put', id, change) }]))[0],
    putChannel: async (id, change) =>
      (await engine().write([{ op: 'put-channel', ...toEntity('channel.put', id, change) }]))[0],
    putConsumer: async (channelId, id, change) => {
      const { callbackUrl, type } = change
      const entity = toEntity('consumer.put', id, change)
      const command = { op: 'put-consumer', ...entity, channelId, callbackUrl, type, rules } as const
      return (await engine().write([command]))[0]
    },
    deleteConsumer: async (channelId, id, condition, attribution) => {
      const now = clock.now()
      const audit = attribution && {
        audit: { at: now, ...attribution, action: 'consumer.delete', details: {} },
      }
      const command = { op: 'delete-consumer', channelId, id, condition, now, ...audit } as const
      return (await engine().write([command]))[0]
    },
    broadcast: traceBroadcasts(broadcast, parts.tracing),
    readJobMessages: readMessagesOf,
    dispatchScheduled: async (countMax) => {
      const [{ numbers, isMore }] = await engine().write([
        { op: 'dispatch-scheduled', now: clock.now(), countMax },
      ])
      for (const number of numbers) fanOut.add(number)
      return isMore
    },
    recover: fanOut.pass,
    close: async () => {
      await lane.waitUntilIdle()
      await fanOut.waitUntilIdle()
    },
  }
}

type BroadcastCall = Readonly<{
  weight: number
  message: NewMessage
  resolve(result: AcceptResult): void
  reject(error: unknown): void
}>

/** Broadcasts that arrive during a write are stored together by the next one. */
function createBroadcastLane(
  { engine, clock }: BrokerParts,
  cache: MessageCache,
  fanOut: FanOut,
): BatchLane<BroadcastCall> {
  const write = async (batch: readonly BroadcastCall[]): Promise<void> => {
    try {
      const messages = batch.map(({ message }) => message)
      const [results] = await engine().write([{ op: 'accept-messages', messages, now: clock.now() }])
      for (const [index, { message, resolve }] of batch.entries()) {
        const result = results[index] as AcceptResult
        if (result.isAccepted && result.number !== null) {
          cache.put(result.number, message)
          fanOut.add(result.number)
        }
        resolve(result)
      }
    } catch (error) {
      if (await handleOneByOne(batch, error, (call) => write([call]))) return
      for (const { reject } of batch) reject(error)
    }
  }
  return new BatchLane({ weightMax: batchBytesMax, batchesMax: 2 }, write)
}

async function readJobMessages(cache: MessageCache, items: readonly Item[]): Promise<readonly JobMessage[]> {
  const numbers = items.map(findMessageNumber)
  const messages = await cache.read(numbers.filter((number) => number !== undefined))
  return items.map((item, at) => {
    const number = numbers[at]
    const { headers, payload }: MessageBytes =
      (number === undefined ? undefined : messages.get(number)) ?? item
    return {
      jobId: item.reference,
      messageId: textOfKey(item.key),
      contentType: item.encoding,
      priority: item.priority,
      headers,
      payload,
    }
  })
}

/** Undefined: the item has its own bytes, because it is the redrive of a letter. */
function findMessageNumber(item: Item): number | undefined {
  return item.letterId === null ? parseJobId(item.reference)?.messageNumber : undefined
}
