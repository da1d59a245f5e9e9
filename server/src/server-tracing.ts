/** The tracing of a server, from its settings. */
import { randomUUID } from 'node:crypto'
import { KnownError } from './errors.ts'
import { createTraceMetrics, type TraceMetrics } from './ops/metrics/trace-metrics.ts'
import type { RunningTracing } from './ops/tracing/tracing.ts'
import type { ServerOptions } from './server-options.ts'
import { version } from './version.ts'

export type ServerTracing = Readonly<{ tracing: RunningTracing; metrics: TraceMetrics }>

/** Undefined without a collector. Rejects if the headers for the collector cannot be read. */
export async function createServerTracing({
  settings,
  log,
  readSecret = async (given) => given,
}: ServerOptions): Promise<ServerTracing | undefined> {
  const endpoint = settings['tracing.otlp_endpoint']
  if (endpoint === undefined) return undefined
  const secret = settings['tracing.otlp_headers']
  let headers: Readonly<Record<string, string>> = {}
  const readHeaders = async (): Promise<typeof headers> => {
    if (secret !== undefined) headers = parseHeaders((await readSecret(secret)).reveal())
    return headers
  }
  await readHeaders()
  const metrics = createTraceMetrics()
  const { createOtelTracing } = await import('./ops/tracing/otel-tracing.ts')
  const tracing = createOtelTracing({
    url: toTracesUrl(endpoint),
    // A secret that cannot be read for a moment must not stop the export.
    readHeaders: () => readHeaders().catch(() => headers),
    sampleRatio: settings['tracing.sample_ratio'],
    serviceName: settings['tracing.service_name'],
    resourceAttributes: Object.fromEntries(settings['tracing.resource_attributes'].map(splitPair)),
    version,
    instance: randomUUID(),
    queueMax: settings['tracing.queue_max'],
    exportMs: settings['tracing.export_interval'],
    metrics,
    log,
  })
  return { tracing, metrics }
}

function toTracesUrl(endpoint: string): string {
  const base = endpoint.replace(/\/+$/, '')
  return base.endsWith('/v1/traces') ? base : `${base}/v1/traces`
}

const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const headerValue = /^[\x20-\x7e]*$/

/** `name=value,name=value`, as in OTEL_EXPORTER_OTLP_HEADERS. */
function parseHeaders(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(',').map(splitPair)
  if (pairs.every(([name, value]) => headerName.test(name) && headerValue.test(value))) {
    return Object.fromEntries(pairs)
  }
  throw new KnownError(
    'SETTING_INVALID',
    'tracing.otlp_headers is not a list of headers such as api-key=abc,tenant=one',
  )
}

function splitPair(text: string): [string, string] {
  const at = text.indexOf('=')
  return at === -1 ? ['', ''] : [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}
