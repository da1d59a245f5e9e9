import { createLoop, type Loop } from '../../engine/loop.ts'
import { type ClusterBridge, createClusterBridge } from './cluster/cluster-bridge.ts'
import { createClusterClients } from './cluster/cluster-clients.ts'
import { describeKafkaError } from './cluster/describe-error.ts'
import type { Kafka, KafkaClusterHealth } from './kafka.ts'
import type { Cluster, KafkaParts } from './parts.ts'
import { createProof, type Proof } from './proof/proof-pass.ts'
import { createReplaySender } from './replay/replay-sender.ts'

export function createKafka(parts: KafkaParts): Kafka {
  const clusters = parts.clusters.map((cluster) => createCluster(cluster, parts))
  return {
    start: () => {
      for (const { bridge, sender, proofLoop } of clusters) {
        bridge.start()
        sender.start()
        proofLoop.start()
      }
    },
    stop: async () => {
      await Promise.all(
        clusters.map(async ({ bridge, sender, proof, proofLoop, clients }) => {
          await Promise.all([bridge.stop(), sender.stop(), proofLoop.stop()])
          await Promise.all([proof.release(), clients.reset()])
        }),
      )
    },
    health: () => clusters.map(({ bridge }) => toHealth(bridge)),
  }
}

function createCluster(cluster: Cluster, parts: KafkaParts) {
  const clients = createClusterClients(cluster)
  const bridge = createClusterBridge(cluster, parts)
  const sender = createReplaySender(cluster, clients, parts)
  const proof = createProof(cluster, clients, parts)
  return { clients, bridge, sender, proof, proofLoop: createProofLoop(cluster, clients, parts, proof) }
}

function createProofLoop(
  cluster: Cluster,
  clients: ReturnType<typeof createClusterClients>,
  parts: KafkaParts,
  proof: Proof,
): Loop {
  const { proofMs, backoffMsMax } = parts.intervals
  let isMore = false
  let failures = 0
  return createLoop(
    () => (isMore ? 0 : Math.min(proofMs * 2 ** failures, Math.max(proofMs, backoffMsMax))),
    async () => {
      isMore = false
      isMore = await proof.pass()
      failures = 0
    },
    async (error) => {
      failures = Math.min(failures + 1, 10)
      if (failures === 1)
        parts.log.warn(
          { cluster: cluster.name, reason: describeKafkaError(error) },
          'the outcome of redrives to Kafka cannot be found out now; will retry',
        )
      await clients.reset()
    },
  )
}

function toHealth({ cluster, state }: ClusterBridge): KafkaClusterHealth {
  const { status, reason, changedAt } = state()
  return { cluster: cluster.name, isUp: status !== 'down', reason, checkedAt: changedAt }
}
