/** A store with an engine, a broker and a dispatcher, as a server has them, without its HTTP edge. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe } from 'vitest'
import { needs } from '../../../tools/services/require-service.ts'
import { type Clock, usPerSecond } from '../../src/core/time/instant.ts'
import type { DeliveryRules } from '../../src/core/webhook/delivery-policy.ts'
import type { WebhookBroker } from '../../src/drivers/webhook/broker/broker.ts'
import { createBroker } from '../../src/drivers/webhook/broker/create-broker.ts'
import { createDispatcher } from '../../src/drivers/webhook/dispatch/create-dispatcher.ts'
import type { DispatchRules } from '../../src/drivers/webhook/dispatch/delivery-rules.ts'
import type { Dispatcher } from '../../src/drivers/webhook/dispatch/dispatcher.ts'
import { createSender } from '../../src/drivers/webhook/push/create-sender.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import type { Consumer } from '../../src/storage/contract/webhooks.ts'
import { createSystemClock } from '../../src/system-clock.ts'
import {
  createTestStore,
  postgres,
  type StoreName,
  type TestStore,
} from '../conformance/support/test-stores.ts'
import { isQuick } from '../is-quick.ts'
import { bytes } from '../make.ts'

export const deliveryRules: DeliveryRules = {
  connectionTimeoutUs: 3 * usPerSecond,
  rationalDelayUs: usPerSecond,
  retriesMax: 5,
  retryDelaysUs: [50_000],
}

export const dispatchRules: DispatchRules = {
  parallelMax: 40,
  queuedMax: 10_000,
  timeoutMs: 3_000,
  payloadBytesMax: 64 * 1_024 * 1_024,
  tokenHeaderName: 'X-Broker-Consumer-Token',
  userAgent: 'Webhook Message Broker',
  permanentStatuses: [410],
  retryAfterUsMax: 3_600 * usPerSecond,
  breaker: {
    failuresMax: 20,
    failureRatioMax: 0.9,
    requestsMin: 1_000,
    windowUs: 60 * usPerSecond,
    holdUs: 300_000,
    holdUsMax: 2 * usPerSecond,
    probeUs: 5 * usPerSecond,
  },
  disableAfterMs: 0,
  attemptRetentionUs: 7 * 86_400 * usPerSecond,
}

export type DispatchNode = Readonly<{
  storage: Storage
  engine: Engine
  broker: WebhookBroker
  dispatcher: Dispatcher
  close(): Promise<void>
}>

export type NodeOptions = Readonly<{
  delivery?: Partial<DeliveryRules>
  dispatch?: Partial<DispatchRules>
  clock?: Clock
}>

/** One server on the store. */
export async function startNode(store: TestStore, options: NodeOptions = {}): Promise<DispatchNode> {
  const storage = await store.open(options.clock === undefined ? {} : { clock: options.clock })
  const clock = options.clock ?? createSystemClock()
  const engine = createEngine(storage, { clock, isTicking: true })
  const rules = { ...dispatchRules, ...options.dispatch }
  const broker = createBroker({
    storage: () => storage,
    engine: () => engine,
    clock,
    rules: { ...deliveryRules, ...options.delivery },
  })
  const sender = createSender({
    addresses: { isLoopbackAllowed: true, allowed: [] },
    timeoutMs: rules.timeoutMs,
  })
  const dispatcher = createDispatcher({
    storage: () => storage,
    engine: () => engine,
    broker,
    sender,
    clock,
    rules,
    onError: (error) => console.error(error),
  })
  dispatcher.start()
  return {
    storage,
    engine,
    broker,
    dispatcher,
    close: async () => {
      await broker.close()
      await dispatcher.stop(1_000)
      await engine.close()
      await storage.close()
    },
  }
}

/** A suite with a server on SQLite in memory, and one on PostgreSQL. */
export function describeNodes(
  subject: string,
  options: NodeOptions,
  body: (given: () => Readonly<{ node: DispatchNode; store: TestStore }>) => void,
): void {
  const names: readonly StoreName[] = isQuick ? ['SQLite memory'] : ['SQLite memory', 'PostgreSQL']
  for (const name of names) {
    describe(`${subject} (${name})`, name === 'PostgreSQL' ? needs(postgres) : {}, () => {
      let current: { node: DispatchNode; store: TestStore } | undefined
      beforeAll(async () => {
        const store = await createTestStore(name)
        current = { store, node: await startNode(store, options) }
      })
      afterAll(async () => {
        await current?.node.close()
        await current?.store.drop()
      })
      body(() => {
        if (current === undefined) throw new Error('the server has not started')
        return current
      })
    })
  }
}

const condition = { kind: 'any' } as const

export async function putChannel(node: DispatchNode, channel: string): Promise<void> {
  await node.broker.putProducer('p', { token: 'p-token', condition })
  await node.broker.putChannel(channel, { token: 'c-token', condition })
}

export async function putConsumer(
  node: DispatchNode,
  channel: string,
  id: string,
  callbackUrl: string,
  type: 'push' | 'pull' = 'push',
): Promise<Consumer> {
  const put = await node.broker.putConsumer(channel, id, {
    callbackUrl,
    type,
    token: `${id}-token`,
    condition,
  })
  if (!('row' in put)) throw new Error(put.outcome)
  return put.row
}

/** Broadcasts messages with the payload `payload of <id>`, and returns their ids. */
export async function broadcast(
  node: DispatchNode,
  channel: string,
  count: number,
  prefix = randomUUID(),
): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
  const results = await Promise.all(
    ids.map((id) =>
      node.broker.broadcast({
        channelId: channel,
        channelToken: 'c-token',
        producerId: 'p',
        producerToken: 'p-token',
        fault: null,
        dueAt: null,
        id,
        contentType: 'application/json',
        priority: 0,
        headers: [['X-Tenant', bytes('a')]],
        payload: bytes(`payload of ${id}`),
      }),
    ),
  )
  for (const result of results) if (!result.isAccepted) throw new Error(result.refusal)
  return ids
}

export async function countsOf(node: DispatchNode, consumer: Consumer) {
  const all = await node.storage.listConsumerCounts(consumer.channelId)
  const { queued, inflight, delivered, dead } = all.find((each) => each.consumer.id === consumer.id) ?? {}
  return { queued, inflight, delivered, dead }
}
