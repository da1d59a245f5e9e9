import { findChromium } from './chromium/find.ts'
import { findKafka } from './kafka/find.ts'
import { findPostgres } from './postgres/find.ts'
import { findPrometheus } from './prometheus/find.ts'
import { findRedis } from './redis/find.ts'
import {
  type Found,
  type RunningService,
  type ServiceFacts,
  ServiceMisconfigured,
  type ServiceName,
  type ServiceRecord,
  ServiceUnavailable,
} from './service.ts'

/** Where a process gets its services from: its own registry, or the registry of the test run over HTTP. */
export interface ServiceSource {
  find<N extends ServiceName>(service: N): Promise<Found<ServiceFacts[N]>>
  /** The services that were requested so far, for the closing summary. */
  records(): Promise<readonly ServiceRecord[]>
}

/** Starts each service at its first request, and stops them all. */
export interface ServiceRegistry extends ServiceSource {
  stopAll(): Promise<void>
}

type Finder<N extends ServiceName> = (
  configured: string | undefined,
) => Promise<RunningService<ServiceFacts[N]>>

const finders: { [N in ServiceName]: Finder<N> } = {
  postgres: findPostgres,
  redis: findRedis,
  kafka: findKafka,
  chromium: findChromium,
  prometheus: findPrometheus,
}

/** The value of a service's environment variable that disables the service. */
export const none = 'none'

export function createServiceRegistry(environment: NodeJS.ProcessEnv): ServiceRegistry {
  const requested = new Map<ServiceName, Promise<unknown>>()
  const records: ServiceRecord[] = []
  const running: RunningService<unknown>[] = []

  async function startService<N extends ServiceName>(service: N): Promise<Found<ServiceFacts[N]>> {
    const startedAtMs = performance.now()
    const tookMs = (): number => Math.round(performance.now() - startedAtMs)
    try {
      const variable = `REDRIVE_TEST_${service.toUpperCase()}`
      const configured = environment[variable] || undefined
      if (configured === none) throw new ServiceUnavailable(`${variable} is "${none}"`)
      const found = await finders[service](configured)
      running.push(found)
      records.push({ service, tookMs: tookMs(), isFound: true, origin: found.origin, version: found.version })
      return { isFound: true, ...found.facts }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      records.push({ service, tookMs: tookMs(), isFound: false, reason })
      if (error instanceof ServiceMisconfigured) throw error
      return { isFound: false, reason }
    }
  }

  return {
    find<N extends ServiceName>(service: N) {
      const earlier = requested.get(service) as Promise<Found<ServiceFacts[N]>> | undefined
      if (earlier !== undefined) return earlier
      const promise = startService(service)
      requested.set(service, promise)
      return promise
    },
    async records() {
      return [...records]
    },
    async stopAll() {
      await Promise.allSettled(requested.values())
      requested.clear()
      await Promise.all(running.splice(0).map((each) => each.stop()))
    },
  }
}
