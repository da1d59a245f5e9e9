/**
 * Webhook consumers that get no pushes. Only consumers that changed are read again, because there can be
 * many; all are read now and then, so that deleted ones are forgotten.
 */
import type { ConsumerFact } from '../../core/alerts/facts.ts'
import { type Clock, type Instant, usPerSecond } from '../../core/time/instant.ts'
import { readDeliveryStatus } from '../../core/webhook/delivery/consumer-delivery.ts'
import type { StoredDelivery } from '../../storage/contract/deliveries.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

const readAllUs = 300 * usPerSecond
/** Clocks of servers differ, and a change is stored some time after its time. */
const overlapUs = 60 * usPerSecond

export function createConsumerReader(
  parts: Readonly<{ storage: () => Pick<StoreReads, 'listDeliveries'>; clock: Clock }>,
): () => Promise<readonly ConsumerFact[]> {
  let stopped = new Map<number, ConsumerFact>()
  let allReadAt: Instant | null = null
  let readAt: Instant = 0
  return async () => {
    const now = parts.clock.now()
    const isWhole = allReadAt === null || now - allReadAt >= readAllUs || now < allReadAt
    const query = isWhole ? {} : { changedSince: readAt - overlapUs }
    const next = new Map(isWhole ? [] : stopped)
    for (const delivery of await parts.storage().listDeliveries(query)) {
      const fact = toFact(delivery)
      if (fact === null) next.delete(delivery.consumer.number)
      else next.set(delivery.consumer.number, fact)
    }
    stopped = next
    readAt = now
    if (isWhole) allReadAt = now
    return [...stopped.values()]
  }
}

function toFact({ consumer, delivery }: StoredDelivery): ConsumerFact | null {
  if (delivery === null) return null
  const status = readDeliveryStatus(delivery)
  const { disabled, breaker, failingSince } = delivery
  if (status !== 'held' && status !== 'disabled') return null
  const since = disabled?.at ?? (breaker.state === 'closed' ? failingSince : breaker.openedAt)
  return { channelId: consumer.channelId, consumerId: consumer.id, status, since: since ?? 0 }
}
