import { Misconfigured, type Running, type ServiceFacts } from '../found.ts'
import { postgresVersion, startPostgres } from './server.ts'

export async function findPostgres(
  configured: string | undefined,
): Promise<Running<ServiceFacts['postgres']>> {
  if (configured !== undefined) {
    const version = await postgresVersion(configured).catch((error: unknown) => {
      throw new Misconfigured(`REDRIVE_TEST_POSTGRES does not answer: ${String(error)}`)
    })
    return { facts: { url: configured }, origin: 'configured', version, stop: async () => {} }
  }
  const server = await startPostgres()
  const version = await postgresVersion(server.url)
  return { facts: { url: server.url }, origin: 'started', version, stop: server.end }
}
