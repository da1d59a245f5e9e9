import { randomBytes } from 'node:crypto'
import { addDuration, type Clock, usPerSecond } from '../../../core/time/instant.ts'
import type { Attempt } from '../../../core/webhook/attempt.ts'
import {
  type ConsumerDelivery,
  type DeliverySettings,
  enableDelivery,
  newDelivery,
  pauseDelivery,
  resumeDelivery,
} from '../../../core/webhook/delivery/consumer-delivery.ts'
import { newLatencies } from '../../../core/webhook/delivery/latency.ts'
import {
  createSigningSecret,
  rotateSigningSecret,
  type SigningSecrets,
} from '../../../core/webhook/signature.ts'
import type { Attribution, Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import type { DeliveryChange, StoredDelivery } from '../../../storage/contract/deliveries.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import type { ConsumerCounts } from '../../../storage/contract/webhooks.ts'
import type { WebhookBroker } from '../broker/broker.ts'
import { createPush } from '../dispatch/create-push.ts'
import type { DispatchRules } from '../dispatch/delivery-rules.ts'
import { toNewAttempt } from '../dispatch/job-pusher.ts'
import type { Sender } from '../push/sender.ts'
import {
  type ConsumerListQuery,
  type ConsumerName,
  type ConsumerReport,
  type Deliveries,
  figureMinutes,
  type TestPush,
} from './deliveries.ts'

export type DeliveriesParts = Readonly<{
  storage: () => StoreReads
  engine: () => Pick<Engine, 'write'>
  broker: Pick<WebhookBroker, 'createId'>
  sender: Pick<Sender, 'send'>
  clock: Clock
  rules: DispatchRules
}>

type Change = Readonly<{
  change: DeliveryChange
  action: string
  details: Readonly<Record<string, unknown>>
  decide(delivery: ConsumerDelivery, secrets: SigningSecrets | null): Decision
}>
type Decision = Readonly<{ delivery: ConsumerDelivery; secrets?: SigningSecrets }>

/** Each repetition means that another request changed the same consumer in between. */
const attemptsMax = 5
const minuteUs = 60 * usPerSecond
const noFigures = { delivered: 0, failed: 0, latencies: newLatencies() }

export function createDeliveries(parts: DeliveriesParts): Deliveries {
  const { storage } = parts
  const report = async (of: ConsumerName): Promise<ConsumerReport> => {
    const stored = await find(parts, of)
    const [counts, figures] = await Promise.all([
      storage().listConsumerCounts(of.channelId),
      storage().sumDeliveryFigures({ since: figuresSince(parts), consumer: stored.consumer.number }),
    ])
    const own = counts.find(({ consumer }) => consumer.number === stored.consumer.number)
    if (own === undefined) throw notFound(of)
    return { counts: own, stored, figures: figures[0] ?? noFigures }
  }
  const apply = async (
    of: ConsumerName,
    change: Change,
    attribution: Attribution,
  ): Promise<ConsumerReport> => {
    await changeDelivery(parts, of, change, attribution)
    return report(of)
  }
  const simple =
    (change: DeliveryChange, decide: (delivery: ConsumerDelivery, reason: string) => ConsumerDelivery) =>
    (of: ConsumerName, attribution: Attribution) =>
      apply(
        of,
        {
          change,
          action: actions[change],
          details: {},
          decide: (delivery) => ({ delivery: decide(delivery, attribution.reason) }),
        },
        attribution,
      )
  return {
    list: (query) => listReports(parts, query),
    get: (channelId, consumerId) => report({ channelId, consumerId }),
    changeSettings: (of, changes, attribution) => apply(of, toSettingsChange(changes), attribution),
    pause: simple('paused', (delivery, reason) => pauseDelivery(delivery, reason, parts.clock.now())),
    resume: simple('resumed', resumeDelivery),
    enable: simple('enabled', enableDelivery),
    readSecrets: async (of) => (await find(parts, of)).secrets ?? (await rotate(parts, of, 0, null)),
    rotateSecret: (of, overlapUs, attribution) => rotate(parts, of, overlapUs, attribution),
    test: (of, test, attribution) => sendTest(parts, of, test, attribution),
    listAttempts: (query) => storage().listAttempts(query),
  }
}

const actions: Readonly<Record<DeliveryChange, string>> = {
  'breaker-opened': 'webhook.breaker.open',
  'breaker-closed': 'webhook.breaker.close',
  disabled: 'webhook.consumer.disable',
  enabled: 'webhook.consumer.enable',
  paused: 'webhook.consumer.pause',
  resumed: 'webhook.consumer.resume',
  'secret-rotated': 'webhook.secret.rotate',
  'settings-changed': 'webhook.consumer.update',
}

function toSettingsChange(changes: Partial<DeliverySettings>): Change {
  return {
    change: 'settings-changed',
    action: actions['settings-changed'],
    details: changes,
    decide: (delivery) => ({ delivery: { ...delivery, settings: { ...delivery.settings, ...changes } } }),
  }
}

/** Without an attribution the consumer gets its first secret, which no person asked for. */
async function rotate(
  parts: DeliveriesParts,
  of: ConsumerName,
  overlapUs: number,
  attribution: Attribution | null,
): Promise<SigningSecrets> {
  const next = createSigningSecret(randomBytes(24))
  const change: Change = {
    change: 'secret-rotated',
    action: actions['secret-rotated'],
    details: { overlap_seconds: overlapUs / usPerSecond },
    decide: (delivery, secrets) => ({
      delivery,
      secrets:
        attribution === null && secrets !== null
          ? secrets
          : rotateSigningSecret(secrets, next, parts.clock.now(), overlapUs),
    }),
  }
  return (await changeDelivery(parts, of, change, attribution)).secrets ?? { current: next, previous: null }
}

async function changeDelivery(
  parts: DeliveriesParts,
  of: ConsumerName,
  { change, action, details, decide }: Change,
  attribution: Attribution | null,
): Promise<Decision> {
  for (let attempt = 1; ; attempt++) {
    const { consumer, version, delivery, secrets } = await find(parts, of)
    const before = delivery ?? newDelivery
    const decision = decide(before, secrets)
    if (decision.delivery === before && decision.secrets === undefined) return decision
    const now = parts.clock.now()
    const audit = { at: now, action, target: `${of.channelId}/${of.consumerId}`, details }
    try {
      await parts.engine().write([
        {
          op: 'put-delivery',
          consumer: consumer.number,
          version,
          document: decision.delivery,
          ...(decision.secrets !== undefined && { secrets: decision.secrets }),
          now,
          change,
          isRequired: true,
        },
        ...(attribution === null ? [] : [{ op: 'audit' as const, entries: [{ ...attribution, ...audit }] }]),
      ])
      return decision
    } catch (error) {
      const isChanged = error instanceof KnownError && error.code === 'CONSUMER_CHANGED'
      if (!isChanged || attempt === attemptsMax) throw error
    }
  }
}

async function listReports(
  parts: DeliveriesParts,
  { channelId, afterNumber = 0, countMax }: ConsumerListQuery,
): Promise<ConsumerReport[]> {
  const storage = parts.storage()
  const [counts, deliveries, figures] = await Promise.all([
    storage.listConsumerCounts(channelId),
    storage.listDeliveries({ changedSince: 0 }),
    storage.sumDeliveryFigures({ since: figuresSince(parts) }),
  ])
  const storedByNumber = new Map(deliveries.map((each) => [each.consumer.number, each]))
  const figuresByNumber = new Map(figures.map((each) => [each.consumer, each]))
  return counts
    .filter(({ consumer }) => consumer.number > afterNumber)
    .slice(0, countMax)
    .map((own: ConsumerCounts) => {
      const { consumer } = own
      const empty: StoredDelivery = { consumer, version: 0, delivery: null, secrets: null }
      return {
        counts: own,
        stored: storedByNumber.get(consumer.number) ?? empty,
        figures: figuresByNumber.get(consumer.number) ?? noFigures,
      }
    })
}

/** The payload is signed like that of a job. Its message id shows that it is a test. */
async function sendTest(
  parts: DeliveriesParts,
  of: ConsumerName,
  { payload, contentType }: TestPush,
  attribution: Attribution,
): Promise<Attempt> {
  const { broker, sender, clock, rules, engine } = parts
  const { consumer, delivery, secrets } = await find(parts, of)
  if (consumer.type !== 'push') {
    throw new KnownError(
      'CONSUMER_NOT_PUSHED',
      `consumer ${of.consumerId} of channel ${of.channelId} is of type pull`,
    )
  }
  const now = clock.now()
  const jobId = broker.createId()
  const message = { jobId, messageId: `test-${jobId}`, contentType, priority: 0, headers: [], payload }
  const timeoutMs = Math.min(delivery?.settings.timeoutMs ?? rules.timeoutMs, rules.timeoutMs)
  const facts = { consumer, secrets, message, requestId: broker.createId(), now, timeoutMs }
  const attempt = await sender.send(createPush(facts, rules))
  const recorded = toNewAttempt(attempt, { consumer: consumer.number, job: '', ordinal: 1, startedAt: now })
  const entry = {
    at: now,
    ...attribution,
    action: 'webhook.consumer.test',
    target: `${of.channelId}/${of.consumerId}`,
    details: { isDelivered: attempt.isDelivered, status: attempt.status },
  }
  await engine().write([
    { op: 'record-attempts', attempts: [recorded] },
    { op: 'audit', entries: [entry] },
  ])
  return attempt
}

async function find({ storage }: DeliveriesParts, of: ConsumerName): Promise<StoredDelivery> {
  const stored = await storage().getDelivery(of.channelId, of.consumerId)
  if (stored === null) throw notFound(of)
  return stored
}

function notFound({ channelId, consumerId }: ConsumerName): KnownError {
  return new KnownError('CONSUMER_NOT_FOUND', `channel ${channelId} has no consumer ${consumerId}`)
}

function figuresSince({ clock }: DeliveriesParts): number {
  return addDuration(clock.now(), -figureMinutes * minuteUs)
}
