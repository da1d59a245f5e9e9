import type { Found, Missing, ServiceFacts, ServiceName } from './found.ts'
import { type PrivatePostgres, privatePostgres, serviceSource } from './index.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Set by `needs` on what is skipped for want of a service; the closing summary reads it. */
    missingServices?: readonly MissingService[]
  }
}

export type MissingService = Readonly<{ service: string; reason: string }>

interface Requirable extends ServiceFacts {
  privatePostgres: PrivatePostgres
}

/** Reading a fact of a service that is missing throws: under `needs`, no test gets that far. */
export type Required<T> = T & Readonly<{ service: string; missing: Missing | undefined }>

/**
 * Asks for a service at the top of a test file:
 *
 *     const kafka = await requireService('kafka')
 *     describe('the bridge', needs(kafka), () => { … kafka.brokers … })
 *
 * Asked for while the file is loaded, not in a hook, because a first start may download for longer
 * than hooks may take.
 */
export async function requireService<S extends keyof Requirable>(
  service: S,
): Promise<Required<Requirable[S]>> {
  const found = (
    service === 'privatePostgres'
      ? await privatePostgres()
      : await serviceSource().find(service as ServiceName)
  ) as Found<Requirable[S]>
  if (found.isFound) return { ...found, service, missing: undefined }
  const absent: object = { service, missing: found }
  return new Proxy(absent, {
    get(target, key) {
      // `then` is what `await` looks for, to tell promises from values.
      if (key in target || key === 'then') return Reflect.get(target, key)
      throw new Error(`${service} is missing, so it has no ${String(key)}: ${found.reason}`)
    },
  }) as Required<Requirable[S]>
}

/** Options for `describe` or `it`: skips it, for a reason that the closing summary tells, if one is missing. */
export function needs(...services: readonly Required<object>[]): {
  skip: boolean
  meta: { missingServices: readonly MissingService[] }
} {
  const missingServices = services.flatMap(({ service, missing }) =>
    missing === undefined ? [] : [{ service, reason: missing.reason }],
  )
  return { skip: missingServices.length > 0, meta: { missingServices } }
}
