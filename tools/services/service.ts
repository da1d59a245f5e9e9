export const serviceNames = ['postgres', 'redis', 'kafka', 'chromium', 'prometheus'] as const
export type ServiceName = (typeof serviceNames)[number]

/** How a test reaches each service. */
export interface ServiceFacts {
  postgres: Readonly<{ url: string }>
  redis: Readonly<{ url: string }>
  kafka: Readonly<{ brokers: readonly string[] }>
  chromium: Readonly<{ executablePath: string }>
  prometheus: Readonly<{ prometheus: string; promtool: string }>
}

/** `reason` is a sentence for the closing summary: the failed try, and what would help. */
export type Missing = Readonly<{ isFound: false; reason: string }>
export type Found<T> = (Readonly<{ isFound: true }> & T) | Missing

/**
 * `configured`: its environment variable names it. `started`: this run started it and will stop it.
 * `installed`: a program that the test launches.
 */
export type Origin = 'configured' | 'started' | 'installed'

/** A usable service, with its facts for tests and for the closing summary. */
export type RunningService<T> = Readonly<{ facts: T; origin: Origin; version: string; stop(): Promise<void> }>

/** One line of the closing summary. */
export type ServiceRecord = Readonly<
  { service: ServiceName; tookMs: number } & (
    | { isFound: true; origin: Origin; version: string }
    | { isFound: false; reason: string }
  )
>

/**
 * The service cannot be used on this machine. Tests that need it are skipped, with the reason in the summary.
 */
export class ServiceUnavailable extends Error {
  override readonly name = 'Unavailable'
}

/**
 * An environment variable names a service that does not answer.
 *
 * The tests are neither skipped nor run against another service: the user who set the variable would believe
 * that this service was tested.
 */
export class ServiceMisconfigured extends Error {
  override readonly name = 'Misconfigured'
}
