import { findChromium } from './chromium/find.ts'
import {
  type Found,
  Misconfigured,
  type Running,
  type ServiceFacts,
  type ServiceName,
  type ServiceRecord,
  Unavailable,
} from './found.ts'
import { findKafka } from './kafka/find.ts'
import { findPostgres } from './postgres/find.ts'
import { findRedis } from './redis/find.ts'

/** Where a process gets its services from: its own keeper, or that of the test run over a desk. */
export interface ServiceSource {
  find<N extends ServiceName>(service: N): Promise<Found<ServiceFacts[N]>>
  /** What was asked for so far, for the closing summary. */
  records(): Promise<readonly ServiceRecord[]>
}

/** Brings each service up once, when first asked for, and ends them all. */
export interface Keeper extends ServiceSource {
  stopAll(): Promise<void>
}

type Finder<N extends ServiceName> = (configured: string | undefined) => Promise<Running<ServiceFacts[N]>>

const finders: { [N in ServiceName]: Finder<N> } = {
  postgres: findPostgres,
  redis: findRedis,
  kafka: findKafka,
  chromium: findChromium,
}

/** The value of a service's variable that says: there is none here, and none is to be started. */
const none = 'none'

export function createKeeper(environment: NodeJS.ProcessEnv): Keeper {
  const asked = new Map<ServiceName, Promise<unknown>>()
  const records: ServiceRecord[] = []
  const running: Running<unknown>[] = []

  async function bringUp<N extends ServiceName>(service: N): Promise<Found<ServiceFacts[N]>> {
    const since = performance.now()
    const tookMs = (): number => Math.round(performance.now() - since)
    try {
      const variable = `REDRIVE_TEST_${service.toUpperCase()}`
      const configured = environment[variable] || undefined
      if (configured === none) throw new Unavailable(`${variable} is "${none}"`)
      const found = await finders[service](configured)
      running.push(found)
      records.push({ service, tookMs: tookMs(), isFound: true, origin: found.origin, version: found.version })
      return { isFound: true, ...found.facts }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      records.push({ service, tookMs: tookMs(), isFound: false, reason })
      if (error instanceof Misconfigured) throw error
      return { isFound: false, reason }
    }
  }

  return {
    find<N extends ServiceName>(service: N) {
      const known = asked.get(service) as Promise<Found<ServiceFacts[N]>> | undefined
      if (known !== undefined) return known
      const promise = bringUp(service)
      asked.set(service, promise)
      return promise
    },
    async records() {
      return [...records]
    },
    async stopAll() {
      await Promise.allSettled(asked.values())
      asked.clear()
      await Promise.all(running.splice(0).map((each) => each.stop()))
    },
  }
}
