/** The system queue of notifications, and its dead queue with those that could not be delivered. */

import type { Notification } from '../../../core/alerts/notification.ts'
import { encodeMessage } from '../../../core/alerts/notification-json.ts'
import { foreverUs, type NewQueue, systemNamespace } from '../../../core/items/queue.ts'
import { usPerSecond } from '../../../core/time/instant.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import type { Import, ItemToImport } from '../../../storage/contract/items.ts'

export const alertQueue = '_alerts'
export const alertDeadQueue = '_alerts.dead'
export const alertPartition = 0

/** If a server dies, another one sends its notifications after this time. An attempt takes less. */
export const leaseTimeoutUs = 60 * usPerSecond

const queues: readonly NewQueue[] = [
  { name: alertDeadQueue, namespace: systemNamespace, partitions: 1 },
  {
    name: alertQueue,
    namespace: systemNamespace,
    partitions: 1,
    deadQueue: alertDeadQueue,
    leaseTimeoutUs,
    // Notifications do not expire while all servers are stopped: the driver decides when to give up.
    expireTimeoutUs: foreverUs,
  },
]

/** Created when they are first needed, so that a server without alerts has no such queues. */
export async function createAlertQueues(engine: Pick<Engine, 'createQueue'>): Promise<void> {
  for (const queue of queues) {
    try {
      await engine.createQueue(queue, { actor: 'policy', reason: 'alerts have a channel', requestId: '' })
    } catch (error) {
      if (!(error instanceof KnownError && error.code === 'QUEUE_EXISTS')) throw error
    }
  }
}

export function toImport(items: readonly ItemToImport[], now: number): Import {
  return { op: 'import', queue: alertQueue, partition: alertPartition, items, now }
}

/** `reference` has the channel, so that the order of a channel is known without the payloads. */
export function toItem(notification: Notification, channel: string): ItemToImport {
  return {
    payload: encodeMessage({ notification, channel }),
    kind: 'notification',
    encoding: 'json',
    reference: channel,
    sourceId: `${notification.id}/${channel}`,
  }
}
