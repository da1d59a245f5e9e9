import { type RunningService, type ServiceFacts, ServiceMisconfigured } from '../service.ts'
import { readPostgresVersion, startPostgres } from './server.ts'

export async function findPostgres(
  configured: string | undefined,
): Promise<RunningService<ServiceFacts['postgres']>> {
  if (configured !== undefined) {
    const version = await readPostgresVersion(configured).catch((error: unknown) => {
      throw new ServiceMisconfigured(`REDRIVE_TEST_POSTGRES does not answer: ${String(error)}`)
    })
    return { facts: { url: configured }, origin: 'configured', version, stop: async () => {} }
  }
  const server = await startPostgres()
  const version = await readPostgresVersion(server.url)
  return { facts: { url: server.url }, origin: 'started', version, stop: server.end }
}
