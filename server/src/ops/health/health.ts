/** `warn`: the component works, but an operator should act. */
export type HealthStatus = 'pass' | 'warn' | 'fail'

/** The state of one component, read without waiting: a health request must never hang. */
export type Component = Readonly<{
  isUp: boolean
  /** It works, but not as it should. */
  isDegraded?: boolean
  reason: string | null
  checkedAt: Date
}>

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
  /** Why the check does not pass. */
  output?: string
}>

/** The worst status of the components. The result has the format `application/health+json`. */
export function readHealth(checks: readonly HealthCheck[], version: string): Health {
  const results = checks.map((check) => [check.name, [readCheck(check)]] as const)
  const statuses = results.map(([, [result]]) => result?.status)
  const status = (['fail', 'warn'] as const).find((each) => statuses.includes(each)) ?? 'pass'
  return { status, version, checks: Object.fromEntries(results) }
}

function readCheck({ componentType, read }: HealthCheck): HealthCheckResult {
  const { isUp, isDegraded = false, reason, checkedAt } = read()
  const time = checkedAt.toISOString()
  if (isUp && !isDegraded) return { componentType, status: 'pass', time }
  return { componentType, status: isUp ? 'warn' : 'fail', time, output: reason ?? 'unknown' }
}
