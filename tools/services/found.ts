export const serviceNames = ['postgres', 'redis', 'kafka', 'chromium'] as const
export type ServiceName = (typeof serviceNames)[number]

/** What a test needs to know of each service to use it. */
export interface ServiceFacts {
  postgres: Readonly<{ url: string }>
  redis: Readonly<{ url: string }>
  kafka: Readonly<{ brokers: readonly string[] }>
  chromium: Readonly<{ executablePath: string }>
}

/** `reason` is a sentence for the closing summary: what was tried, and what would help. */
export type Missing = Readonly<{ isFound: false; reason: string }>
export type Found<T> = (Readonly<{ isFound: true }> & T) | Missing

/** `configured`: named by its variable. `started`: ours, ends with the run. `installed`: a program to launch. */
export type Origin = 'configured' | 'started' | 'installed'

/** A service at hand, with what the closing summary says of it. */
export type Running<T> = Readonly<{ facts: T; origin: Origin; version: string; stop(): Promise<void> }>

/** One line of the closing summary. */
export type ServiceRecord = Readonly<
  { service: ServiceName; tookMs: number } & (
    | { isFound: true; origin: Origin; version: string }
    | { isFound: false; reason: string }
  )
>

/** The service cannot be had here. Tests that need it are skipped, and the closing summary says why. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
}

/**
 * A variable names a service that does not answer.
 *
 * Never a reason to skip or to start another: whoever set the variable would believe that their
 * service was tested.
 */
export class Misconfigured extends Error {
  override readonly name = 'Misconfigured'
}
