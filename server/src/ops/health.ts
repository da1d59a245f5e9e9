export type HealthStatus = 'pass' | 'fail'

/** The state of one component, read without waiting: a health request must never hang. */
export type Component = Readonly<{ isUp: boolean; reason: string | null; checkedAt: Date }>

export type HealthCheck = Readonly<{
  /** `component:measurement`, e.g. `queues:storage`. */
  name: string
  componentType: 'datastore' | 'component' | 'system'
  read: () => Component
}>

export type Health = Readonly<{
  status: HealthStatus
  version: string
  checks: Readonly<Record<string, readonly HealthCheckResult[]>>
}>

export type HealthCheckResult = Readonly<{
  componentType: string
  status: HealthStatus
  time: string
  /** Why the check fails. */
  output?: string
}>

/** Passes if every component passes. The result has the format `application/health+json`. */
export function readHealth(checks: readonly HealthCheck[], version: string): Health {
  const results = checks.map((check) => [check.name, [readCheck(check)]] as const)
  const isPassing = results.every(([, [result]]) => result?.status === 'pass')
  return { status: isPassing ? 'pass' : 'fail', version, checks: Object.fromEntries(results) }
}

function readCheck({ componentType, read }: HealthCheck): HealthCheckResult {
  const { isUp, reason, checkedAt } = read()
  const time = checkedAt.toISOString()
  if (isUp) return { componentType, status: 'pass', time }
  return { componentType, status: 'fail', time, output: reason ?? 'unknown' }
}
