/** The committed offsets of all consumer groups of a cluster, read together and kept for a short time. */
import type { Admin } from '@platformatic/kafka'

export type GroupOffset = Readonly<{ group: string; topic: string; partition: number; committed: number }>

export interface GroupOffsets {
  /** At most `ageMsMax` old. Concurrent calls share one read. */
  read(ageMsMax: number): Promise<readonly GroupOffset[]>
  /** The groups that read a topic, without the group of the bridge. */
  listReaders(topic: string, ageMsMax: number): Promise<readonly string[]>
  /** The state of each group that exists. */
  listStates(): Promise<ReadonlyMap<string, string>>
}

/**
 * A cluster with more groups is not shown in full: each request of their offsets would block the coordinator.
 */
export const groupsMax = 2_000
const groupsPerRequest = 100

export function createGroupOffsets(admin: () => Promise<Admin>, bridgeGroup: string): GroupOffsets {
  let known: Readonly<{ atMs: number; offsets: Promise<readonly GroupOffset[]> }> | undefined
  const read = (ageMsMax: number): Promise<readonly GroupOffset[]> => {
    if (known !== undefined && performance.now() - known.atMs <= ageMsMax) return known.offsets
    const reading = { atMs: performance.now(), offsets: admin().then(readOffsets) }
    known = reading
    reading.offsets.catch(() => {
      if (known === reading) known = undefined
    })
    return reading.offsets
  }
  return {
    read,
    listReaders: async (topic, ageMsMax) => {
      const offsets = await read(ageMsMax)
      const groups = offsets.flatMap((each) => (each.topic === topic ? each.group : []))
      return [...new Set(groups)].filter((group) => group !== bridgeGroup).sort()
    },
    listStates: async () => {
      const groups = await (await admin()).listGroups()
      return new Map([...groups.values()].map(({ id, state }) => [id, String(state)]))
    },
  }
}

async function readOffsets(admin: Admin): Promise<readonly GroupOffset[]> {
  const groups = [...(await admin.listGroups()).values()]
    .filter(({ protocolType }) => protocolType === 'consumer' || protocolType === '')
    .map(({ id }) => id)
    .slice(0, groupsMax)
  const offsets: GroupOffset[] = []
  for (let at = 0; at < groups.length; at += groupsPerRequest) {
    const answered = await admin.listConsumerGroupOffsets({ groups: groups.slice(at, at + groupsPerRequest) })
    for (const { groupId, topics } of answered)
      for (const { name, partitions } of topics)
        for (const { partitionIndex, committedOffset } of partitions)
          if (committedOffset >= 0n)
            offsets.push({
              group: groupId,
              topic: name,
              partition: partitionIndex,
              committed: Number(committedOffset),
            })
  }
  return offsets
}
