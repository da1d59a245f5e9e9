import type { MissingService } from './services/require-service.ts'
import type { ServiceRecord } from './services/service.ts'

export type SkippedTest = Readonly<{
  name: string
  note: string | undefined
  missing: readonly MissingService[]
}>

export type RunSummary = Readonly<{
  passed: number
  failed: number
  skipped: readonly SkippedTest[]
  services: readonly ServiceRecord[]
  isInterrupted: boolean
  isCi: boolean
  /** A quick run leaves services out on purpose, so it does not list the tests that need them. */
  isQuick: boolean
}>

/** A service that was not available, and the tests that were skipped for this reason. */
type MissingEntry = { reason: string; tests: string[] }

export function isFailedByMissingService(summary: RunSummary): boolean {
  return summary.isCi && !summary.isQuick && findMissingServices(summary).size > 0
}

export function buildReportLines(summary: RunSummary): readonly string[] {
  const { passed, failed, skipped, isInterrupted } = summary
  return [
    ...(summary.isQuick
      ? ['', 'Quick: npm test also runs the long suites and those that need a service.']
      : []),
    ...(summary.isQuick ? [] : buildServiceLines(summary)),
    ...buildSkipLines(skipped),
    ...(isInterrupted ? ['', 'The run was interrupted: tests that had not run yet count as skipped.'] : []),
    ...(isFailedByMissingService(summary)
      ? ['', 'FAILED because CI=true and a service is missing: with CI=true no test may be skipped for this.']
      : []),
    '',
    `${passed} passed, ${failed} failed, ${skipped.length} skipped`,
    '',
  ]
}

function buildServiceLines(summary: RunSummary): readonly string[] {
  const found = summary.services.flatMap((record) =>
    record.isFound
      ? [`  ${record.service}: ${record.version}, ${record.origin} in ${formatSeconds(record.tookMs)}`]
      : [],
  )
  const missing = [...findMissingServices(summary)].flatMap(([service, { reason, tests }]) => [
    `  ${service}: NOT AVAILABLE: ${reason}`,
    ...tests.map((name) => `    skipped: ${name}`),
  ])
  const hint =
    missing.length === 0
      ? []
      : ['  Set an environment variable to use a service that is already running: see docs/testing.md.']
  return found.length + missing.length === 0 ? [] : ['', 'Services', ...found, ...missing, ...hint]
}

function buildSkipLines(skipped: readonly SkippedTest[]): readonly string[] {
  const others = skipped.filter(({ missing }) => missing.length === 0)
  if (others.length === 0) return []
  return [
    '',
    'Skipped',
    ...others.map(({ name, note }) => `  ${name}${note === undefined ? '' : `: ${note}`}`),
  ]
}

function findMissingServices({ services, skipped }: RunSummary): ReadonlyMap<string, MissingEntry> {
  const byService = new Map<string, MissingEntry>()
  for (const record of services) {
    if (!record.isFound) byService.set(record.service, { reason: record.reason, tests: [] })
  }
  for (const { name, missing } of skipped) {
    for (const { service, reason } of missing) {
      const entry = byService.get(service) ?? { reason, tests: [] }
      entry.tests.push(name)
      byService.set(service, entry)
    }
  }
  return byService
}

function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
