/**
 * Spans for other systems. This folder is the only code that knows OpenTelemetry; other layers report spans
 * through `core/trace/tracing.ts`. `otel-tracing.ts` is imported only if a collector is configured, because
 * its packages take memory and start-up time.
 */
import type { Tracing } from '../../core/trace/tracing.ts'
import type { TraceMetrics } from '../metrics/trace-metrics.ts'

export type TracingOptions = Readonly<{
  /** Where spans are sent: the whole URL. */
  url: string
  /** The headers of each export, read for each export because a secret may change. */
  readHeaders(): Promise<Readonly<Record<string, string>>>
  /** The part of new traces that is sampled, from 0 to 1. The client decides about its own traces. */
  sampleRatio: number
  serviceName: string
  resourceAttributes: Readonly<Record<string, string>>
  version: string
  /** A unique name of this process. */
  instance: string
  /** Spans that wait to be exported. Further spans are dropped. */
  queueMax: number
  /** How long spans are collected before they are exported. */
  exportMs: number
  metrics: TraceMetrics
  log: TracingLog
}>

/** The subset of a pino logger that is used here. */
export interface TracingLog {
  info(fields: object, sentence: string): void
  warn(fields: object, sentence: string): void
}

export interface RunningTracing extends Tracing {
  /** Exports the spans that wait, for a short time, and stops. */
  stop(): Promise<void>
}
