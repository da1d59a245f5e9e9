import { Misconfigured, type Running, type ServiceFacts } from '../found.ts'
import { clusterOf } from './cluster.ts'
import { startKafka } from './server.ts'

export async function findKafka(configured: string | undefined): Promise<Running<ServiceFacts['kafka']>> {
  if (configured !== undefined) {
    const brokers = configured.split(',').map((broker) => broker.trim())
    const cluster = await clusterOf(brokers).catch((error: unknown) => {
      throw new Misconfigured(`REDRIVE_TEST_KAFKA does not answer: ${String(error)}`)
    })
    // The protocol has no question for a broker's release.
    const version = `of cluster ${cluster.id}, ${cluster.nodes} nodes`
    return { facts: { brokers }, origin: 'configured', version, stop: async () => {} }
  }
  const { brokers, version, end } = await startKafka()
  return { facts: { brokers }, origin: 'started', version, stop: end }
}
