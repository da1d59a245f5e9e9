/**
 * Brings the store to the configuration of this server, before the first push: the producers, channels and
 * consumers of `redrive.yaml`, and the rules of delivery in the queues of existing consumers.
 *
 * The store records a checksum of what was applied last, so that a start without a change writes nothing, and
 * an object that was changed over HTTP stays changed until the list changes. Servers that start at the same
 * time take turns, by a lock. A list is applied in one transaction: a server that is killed has applied all
 * of it, or nothing.
 */
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { addDuration, type Clock, usPerSecond } from '../../../core/time/instant.ts'
import type { ConfiguredEntity, ConfiguredWebhooks } from '../../../core/webhook/configured.ts'
import {
  consumerPolicy,
  type DeliveryRules,
  hasConsumerPolicy,
} from '../../../core/webhook/delivery-policy.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import type { HeldLock } from '../../../storage/contract/locks.ts'
import type { UpdateQueue } from '../../../storage/contract/queues.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import type { PutChannel, PutConsumer, PutProducer } from '../../../storage/contract/webhooks.ts'

export type ConfigurationParts = Readonly<{
  storage: StoreReads
  engine: Pick<Engine, 'write'>
  clock: Clock
  rules: DeliveryRules
  createId(): string
  createToken(): string
}>

const lockUs = 30 * usPerSecond
const lockWaitMs = 100
/** Queues whose policy one transaction changes. */
const queuesMax = 100

export async function applyConfiguration(
  parts: ConfigurationParts,
  configured: ConfiguredWebhooks,
): Promise<void> {
  const checksums = { entities: computeChecksum(configured), rules: computeChecksum(parts.rules) }
  const wanted = `${checksums.entities}/${checksums.rules}`
  const { storage } = parts
  if ((await storage.readConfigurationChecksum()) === wanted) return
  const lock = await acquire(parts)
  try {
    const before = await storage.readConfigurationChecksum()
    const [entities, rules] = before?.split('/') ?? []
    if (rules !== checksums.rules) await updatePolicies(parts, lock)
    const isListed = Object.values(configured).some((list) => list.length > 0)
    const puts = isListed && entities !== checksums.entities ? await createPuts(parts, configured) : []
    if (before === wanted) return
    const now = parts.clock.now()
    await parts.engine.write([
      { op: 'fence', lock },
      ...puts,
      { op: 'record-configuration', checksum: wanted, now },
    ])
  } finally {
    await parts.engine.write([{ op: 'release-lock', lock }])
  }
}

function computeChecksum(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

/** Waits while another server applies its configuration. */
async function acquire({ engine, clock }: ConfigurationParts): Promise<HeldLock> {
  const owner = randomUUID()
  for (;;) {
    const now = clock.now()
    const deadline = addDuration(now, lockUs)
    const [lock] = await engine.write([
      { op: 'acquire-lock', name: 'webhooks/configuration', owner, now, deadline },
    ])
    if (lock !== null) return lock
    await sleep(lockWaitMs)
  }
}

/** Settings such as the number of retries are in the policies of the queues of consumers. */
async function updatePolicies({ storage, engine, clock, rules }: ConfigurationParts, lock: HeldLock) {
  let changes: UpdateQueue[] = []
  const write = async (): Promise<void> => {
    const deadline = addDuration(clock.now(), lockUs)
    await engine.write([{ op: 'fence', lock }, ...changes, { op: 'renew-lock', lock, deadline }])
    changes = []
  }
  for (const { consumer } of await storage.listConsumerCounts()) {
    const queue = await storage.getQueue(consumer.queue)
    const wanted = consumerPolicy(consumer.type, rules)
    if (queue === null || hasConsumerPolicy(queue, wanted)) continue
    changes.push({ op: 'update-queue', name: consumer.queue, changes: wanted, now: clock.now() })
    if (changes.length >= queuesMax) await write()
  }
  if (changes.length > 0) await write()
}

type Put = PutProducer | PutChannel | PutConsumer

async function createPuts(
  parts: ConfigurationParts,
  { producers, channels, consumers }: ConfiguredWebhooks,
): Promise<Put[]> {
  const { storage, clock, rules } = parts
  const now = clock.now()
  /** Without a token in the list, an existing object keeps its own. */
  const toEntity = (action: string, given: ConfiguredEntity, before: Readonly<{ token: string }> | null) => {
    const { id, name = id, token = before?.token ?? parts.createToken() } = given
    const audit = { at: now, actor: 'system', reason: 'configuration', requestId: '', action, details: {} }
    return { id, name, token, xid: parts.createId(), condition: { kind: 'any' }, now, audit } as const
  }
  const puts: Put[] = []
  for (const each of producers) {
    const before = await storage.getProducer(each.id)
    puts.push({ op: 'put-producer', ...toEntity('producer.put', each, before) })
  }
  for (const each of channels) {
    const before = await storage.getChannel(each.id)
    puts.push({ op: 'put-channel', ...toEntity('channel.put', each, before) })
  }
  const isConfigured = new Set(channels.map(({ id }) => id))
  for (const each of consumers) {
    const { channel: channelId, callbackUrl, type = 'push' } = each
    if (!isConfigured.has(channelId) && (await storage.getChannel(channelId)) === null)
      throw new KnownError(
        'SETTING_INVALID',
        `webhooks.consumers has ${each.id}, but its channel ${channelId} does not exist`,
      )
    const entity = toEntity('consumer.put', each, await storage.getConsumer(channelId, each.id))
    puts.push({ op: 'put-consumer', ...entity, channelId, callbackUrl, type, rules })
  }
  return puts
}
