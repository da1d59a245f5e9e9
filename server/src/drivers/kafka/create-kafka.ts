import { createLoop, type Loop } from '../../engine/loop.ts'
import { KnownError } from '../../errors.ts'
import { nameDeadQueue } from './bridge/dead-topics.ts'
import { type ClusterBridge, createClusterBridge } from './cluster/cluster-bridge.ts'
import { createClusterClients } from './cluster/cluster-clients.ts'
import { ignoreConnectionErrors } from './cluster/connection-errors.ts'
import { describeKafkaError, kafkaUnavailable } from './cluster/describe-error.ts'
import type { Kafka, KafkaClusterHealth } from './kafka.ts'
import { createLagMonitor } from './lag/lag-monitor.ts'
import type { Cluster, KafkaParts } from './parts.ts'
import { createProof, type Proof } from './proof/proof-pass.ts'
import { createReplaySender } from './replay/replay-sender.ts'

/** A call that asks for the groups of a topic may get an answer of this age. */
const readersAgeMsMax = 1_000

export function createKafka(parts: KafkaParts): Kafka {
  ignoreConnectionErrors()
  const clusters = parts.clusters.map((cluster) => createCluster(cluster, parts))
  const find = (name: string) => {
    const found = clusters.find(({ cluster }) => cluster.name === name)
    if (found !== undefined) return found
    throw new KnownError('KAFKA_CLUSTER_NOT_FOUND', `there is no Kafka cluster named ${name}`)
  }
  return {
    clusters: parts.clusters.map((cluster) => ({
      name: cluster.name,
      brokers: cluster.brokers,
      group: cluster.group,
      replay: cluster.replay,
      nameDeadQueue: (topic) => nameDeadQueue(cluster, topic),
    })),
    start: () => {
      for (const { bridge, sender, proofLoop, lag } of clusters) {
        bridge.start()
        sender.start()
        proofLoop.start()
        lag.loop.start()
      }
    },
    stop: async () => {
      await Promise.all(
        clusters.map(async ({ bridge, sender, proof, proofLoop, lag, clients }) => {
          await Promise.all([bridge.stop(), sender.stop(), proofLoop.stop(), lag.loop.stop()])
          await Promise.all([proof.release(), clients.reset()])
        }),
      )
    },
    health: () => clusters.map(({ bridge }) => toHealth(bridge)),
    listFigures: () => clusters.map(({ lag }) => lag.figures()),
    listReaders: async (cluster, topic) => {
      const { clients } = find(cluster)
      try {
        return await clients.groupOffsets.listReaders(topic, readersAgeMsMax)
      } catch (error) {
        throw kafkaUnavailable(cluster, error)
      }
    },
  }
}

function createCluster(cluster: Cluster, parts: KafkaParts) {
  const clients = createClusterClients(cluster)
  const bridge = createClusterBridge(cluster, parts)
  const sender = createReplaySender(cluster, clients, parts)
  const proof = createProof(cluster, clients, parts)
  const lag = createLagMonitor(cluster, clients, parts)
  return {
    cluster,
    clients,
    bridge,
    sender,
    proof,
    lag,
    proofLoop: createProofLoop(cluster, clients, parts, proof),
  }
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
