import { type ClusterBridge, createClusterBridge } from './cluster/cluster-bridge.ts'
import type { Kafka, KafkaClusterHealth } from './kafka.ts'
import type { KafkaParts } from './parts.ts'

export function createKafka(parts: KafkaParts): Kafka {
  const bridges = parts.clusters.map((cluster) => createClusterBridge(cluster, parts))
  return {
    start: () => {
      for (const bridge of bridges) bridge.start()
    },
    stop: async () => {
      await Promise.all(bridges.map((bridge) => bridge.stop()))
    },
    health: () => bridges.map(toHealth),
  }
}

function toHealth({ cluster, state }: ClusterBridge): KafkaClusterHealth {
  const { status, reason, changedAt } = state()
  return { cluster: cluster.name, isUp: status !== 'down', reason, checkedAt: changedAt }
}
