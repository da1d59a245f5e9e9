import { type RunningService, type ServiceFacts, ServiceMisconfigured } from '../service.ts'
import { describeCluster } from './describe-cluster.ts'
import { startKafka } from './server.ts'

export async function findKafka(
  configured: string | undefined,
): Promise<RunningService<ServiceFacts['kafka']>> {
  if (configured !== undefined) {
    const brokers = configured.split(',').map((broker) => broker.trim())
    const cluster = await describeCluster(brokers).catch((error: unknown) => {
      throw new ServiceMisconfigured(`REDRIVE_TEST_KAFKA does not answer: ${String(error)}`)
    })
    // The protocol has no request for the version of a broker.
    const version = `of cluster ${cluster.id}, ${cluster.nodes} nodes`
    return { facts: { brokers }, origin: 'configured', version, stop: async () => {} }
  }
  const { brokers, version, end } = await startKafka()
  return { facts: { brokers }, origin: 'started', version, stop: end }
}
