import { join } from 'node:path'
import { registryUrlVariable, startRegistryServer } from './registry-server.ts'
import { createServiceRegistry } from './service-registry.ts'

/** Vitest calls this function once before all test files, and the returned function once after them. */
export default async function setUp(): Promise<() => Promise<void>> {
  const registry = createServiceRegistry(process.env)
  const registryServer = await startRegistryServer(registry)
  process.env[registryUrlVariable] = registryServer.url
  // Tests start hundreds of processes, and each would compile the same files again.
  process.env.NODE_COMPILE_CACHE ??= join(
    import.meta.dirname,
    '..',
    '..',
    'node_modules',
    '.cache',
    'compiled',
  )
  return async () => {
    await registryServer.close()
    await registry.stopAll()
  }
}
