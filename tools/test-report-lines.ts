import type { ServiceRecord } from './services/found.ts'
import type { MissingService } from './services/require-service.ts'

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
}>

/** What a run lacked, by service: asked for in vain, or named by a test that was skipped for it. */
type Lack = { reason: string; tests: string[] }

export function failsForMissing(summary: RunSummary): boolean {
  return summary.isCi && lacks(summary).size > 0
}

export function reportLines(summary: RunSummary): readonly string[] {
  const { passed, failed, skipped, isInterrupted } = summary
  return [
    ...serviceLines(summary),
    ...otherSkips(skipped),
    ...(isInterrupted ? ['', 'The run was interrupted: what had not run yet counts as skipped.'] : []),
    ...(failsForMissing(summary)
      ? ['', 'FAILED because CI=true and a service is missing: no test may be skipped for want of one.']
      : []),
    '',
    `${passed} passed, ${failed} failed, ${skipped.length} skipped`,
    '',
  ]
}

function serviceLines(summary: RunSummary): readonly string[] {
  const found = summary.services.flatMap((record) =>
    record.isFound
      ? [`  ${record.service}: ${record.version}, ${record.origin} in ${seconds(record.tookMs)}`]
      : [],
  )
  const missing = [...lacks(summary)].flatMap(([service, { reason, tests }]) => [
    `  ${service}: NOT AVAILABLE: ${reason}`,
    ...tests.map((name) => `    skipped: ${name}`),
  ])
  const wayOut =
    missing.length === 0 ? [] : ['  A variable can name one that runs elsewhere: see docs/testing.md.']
  return found.length + missing.length === 0 ? [] : ['', 'Services', ...found, ...missing, ...wayOut]
}

function otherSkips(skipped: readonly SkippedTest[]): readonly string[] {
  const others = skipped.filter(({ missing }) => missing.length === 0)
  if (others.length === 0) return []
  return [
    '',
    'Skipped',
    ...others.map(({ name, note }) => `  ${name}${note === undefined ? '' : `: ${note}`}`),
  ]
}

function lacks({ services, skipped }: RunSummary): ReadonlyMap<string, Lack> {
  const byService = new Map<string, Lack>()
  for (const record of services) {
    if (!record.isFound) byService.set(record.service, { reason: record.reason, tests: [] })
  }
  for (const { name, missing } of skipped) {
    for (const { service, reason } of missing) {
      const lack = byService.get(service) ?? { reason, tests: [] }
      lack.tests.push(name)
      byService.set(service, lack)
    }
  }
  return byService
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
