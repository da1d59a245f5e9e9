import { Admin } from '@platformatic/kafka'

/** Reads id and size of the cluster from its brokers. Throws if no broker answers. */
export async function describeCluster(brokers: readonly string[]): Promise<{ id: string; nodes: number }> {
  const admin = new Admin({
    clientId: 'redrive-test-services',
    bootstrapBrokers: [...brokers],
    retries: false,
    connectTimeout: 5_000,
  })
  try {
    const metadata = await admin.metadata({ topics: [] })
    return { id: metadata.id, nodes: metadata.brokers.size }
  } finally {
    await admin.close()
  }
}
