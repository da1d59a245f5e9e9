import {
  getServiceSource,
  type PrivateKafka,
  type PrivatePostgres,
  type PrivatePostgresPair,
  type PrivateRedis,
  startPrivateKafka,
  startPrivatePostgres,
  startPrivatePostgresPair,
  startPrivateRedis,
} from './index.ts'
import type { KafkaOptions } from './kafka/server.ts'
import type { PostgresOptions } from './postgres/server.ts'
import type { Found, Missing, ServiceFacts, ServiceName } from './service.ts'

declare module 'vitest' {
  interface TaskMeta {
    /**
     * `needs` sets it on tests that are skipped because a service is missing; the closing summary reads it.
     */
    missingServices?: readonly MissingService[]
  }
}

export type MissingService = Readonly<{ service: string; reason: string }>

interface Requirable extends ServiceFacts {
  privatePostgres: PrivatePostgres
  privatePostgresPair: PrivatePostgresPair
  privateKafka: PrivateKafka
  privateRedis: PrivateRedis
}

/** Reading a fact of a missing service throws. Tests with `needs` are skipped before they could read it. */
export type Required<T> = T & Readonly<{ service: string; missing: Missing | undefined }>

type OptionsOf<S> = S extends 'privatePostgres'
  ? [options?: PostgresOptions]
  : S extends 'privateKafka'
    ? [options?: KafkaOptions]
    : []

function find(service: keyof Requirable, options: object | undefined): Promise<Found<object>> {
  switch (service) {
    case 'privatePostgres':
      return startPrivatePostgres(options)
    case 'privatePostgresPair':
      return startPrivatePostgresPair()
    case 'privateKafka':
      return startPrivateKafka(options)
    case 'privateRedis':
      return startPrivateRedis()
    default:
      return getServiceSource().find(service as ServiceName)
  }
}

/**
 * Requests a service at the top of a test file:
 *
 *     const kafka = await requireService('kafka')
 *     describe('the bridge', needs(kafka), () => { … kafka.brokers … })
 *
 * Call it while the file is loaded, not in a hook: the first start may download for longer than the timeout
 * of a hook.
 */
export async function requireService<S extends keyof Requirable>(
  service: S,
  ...[options]: OptionsOf<S>
): Promise<Required<Requirable[S]>> {
  const found = (await find(service, options)) as Found<Requirable[S]>
  if (found.isFound) return { ...found, service, missing: undefined }
  const absent: object = { service, missing: found }
  return new Proxy(absent, {
    get(target, key) {
      // `await` reads `then` to distinguish promises from values.
      if (key in target || key === 'then') return Reflect.get(target, key)
      throw new Error(`${service} is missing, so it has no ${String(key)}: ${found.reason}`)
    },
  }) as Required<Requirable[S]>
}

/**
 * Options for `describe` or `it`: if a service is missing, the tests are skipped and listed in the summary.
 */
export function needs(...services: readonly Required<object>[]): {
  skip: boolean
  meta: { missingServices: readonly MissingService[] }
} {
  const missingServices = services.flatMap(({ service, missing }) =>
    missing === undefined ? [] : [{ service, reason: missing.reason }],
  )
  return { skip: missingServices.length > 0, meta: { missingServices } }
}
