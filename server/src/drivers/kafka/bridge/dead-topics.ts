/** Finds the dead-letter topics of a cluster, and creates the dead queue of each. */
import type { Admin } from '@platformatic/kafka'
import { defaultPolicy } from '../../../core/items/queue.ts'
import { createDeadQueueReference } from '../../../core/kafka/replay-queues.ts'
import { classifyTopic, matchesAny } from '../../../core/kafka/topic-patterns.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import { type Cluster, kafkaActor } from '../parts.ts'

export async function listDeadTopics(
  admin: Pick<Admin, 'listTopics'>,
  { topics, topicsIgnored }: Pick<Cluster, 'topics' | 'topicsIgnored'>,
): Promise<readonly string[]> {
  const all = await admin.listTopics({ includeInternals: false })
  return all.filter((topic) => matchesAny(topics, topic) && !matchesAny(topicsIgnored, topic)).sort()
}

export function nameDeadQueue({ queue, name }: Cluster, topic: string): string {
  return queue.replaceAll('{topic}', topic).replaceAll('{cluster}', name)
}

/**
 * The partitions of a new dead queue. Letters of several partitions are stored at the same time, while those
 * of one wait for each other. More of them would not be faster, because a bridge stores this many at a time.
 */
export const deadQueuePartitions = 4

/**
 * Returns whether the queue was created. An existing queue keeps its settings, which a person may have
 * changed.
 */
export async function ensureDeadQueue(
  engine: Pick<Engine, 'getQueue' | 'createQueue'>,
  settings: Cluster,
  topic: string,
): Promise<boolean> {
  const name = nameDeadQueue(settings, topic)
  if ((await engine.getQueue(name)) !== null) return false
  const letterClass = classifyTopic(settings.classes, topic, defaultPolicy.letterClass)
  const reference = createDeadQueueReference(settings.name)
  const attribution = {
    actor: kafkaActor,
    reason: `dead-letter topic ${topic} appeared in cluster ${settings.name}`,
    requestId: '',
  }
  try {
    await engine.createQueue({ name, letterClass, reference, partitions: deadQueuePartitions }, attribution)
    return true
  } catch (error) {
    // Another server found the topic at the same time.
    if (error instanceof KnownError && error.code === 'QUEUE_EXISTS') return false
    throw error
  }
}
