/** Kafka removes records after the retention of their topic, whether they were read or not. */
import { type Admin, ConfigResourceTypes, type Consumer } from '@platformatic/kafka'
import { type Instant, usPerMs } from '../../../core/time/instant.ts'
import type { DeadTopicFigures } from '../kafka.ts'

export interface RetentionReader {
  /** Null: Kafka keeps the records forever, or does not report it. */
  read(admin: Admin, topic: string): Promise<number | null>
}

const knownMsMax = 10 * 60_000

export function createRetentionReader(): RetentionReader {
  const known = new Map<string, Readonly<{ atMs: number; retentionMs: number | null }>>()
  return {
    read: async (admin, topic) => {
      const before = known.get(topic)
      if (before !== undefined && performance.now() - before.atMs < knownMsMax) return before.retentionMs
      // A cluster may forbid reading configurations. Reading records does not depend on it.
      const retentionMs = await readRetention(admin, topic).catch(() => null)
      known.set(topic, { atMs: performance.now(), retentionMs })
      return retentionMs
    },
  }
}

async function readRetention(admin: Admin, topic: string): Promise<number | null> {
  const [described] = await admin.describeConfigs({
    resources: [
      {
        resourceType: ConfigResourceTypes.TOPIC,
        resourceName: topic,
        configurationKeys: ['retention.ms', 'cleanup.policy'],
      },
    ],
  })
  const value = (name: string) => described?.configs.find((config) => config.name === name)?.value ?? ''
  const retentionMs = Number(value('retention.ms'))
  const isDeleted = value('cleanup.policy').includes('delete')
  return isDeleted && retentionMs > 0 ? retentionMs : null
}

/** Unread records that are older than this part of the retention are about to be removed. */
const share = 0.8

/** Whether the topic has unread records that Kafka removes soon. */
export async function readLosingSoon(
  reader: Pick<Consumer, 'listOffsets'>,
  { topic, unreadCount, partitions }: Pick<DeadTopicFigures, 'topic' | 'unreadCount' | 'partitions'>,
  retentionMs: number | null,
  now: Instant,
): Promise<boolean> {
  if (retentionMs === null || unreadCount === 0) return false
  const timestamp = BigInt(Math.floor(now / usPerMs - retentionMs * share))
  // The first offsets that are younger than the bound; -1: all records of the partition are older.
  const younger = (await reader.listOffsets({ topics: [topic], timestamp })).get(topic) ?? []
  return partitions.some(({ partition, position, earliest, end }) => {
    const next = Math.max(position ?? 0, earliest)
    const bound = Number(younger[partition] ?? -1n)
    return next < (bound < 0 ? end : bound)
  })
}
