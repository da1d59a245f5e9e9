/** The spans that this process exported and dropped. */
import { Counter, type Registry } from 'prom-client'

export type TraceMetrics = Readonly<{
  count(result: 'exported' | 'dropped', spans: number): void
  register(registry: Registry): void
}>

/** The metric is in no registry yet, because spans exist before the metrics are created. */
export function createTraceMetrics(): TraceMetrics {
  const spans = new Counter({
    name: 'redrive_trace_spans_total',
    help: 'Spans by result: exported, or dropped because the collector did not accept them or too many waited.',
    labelNames: ['result'],
    registers: [],
  })
  for (const result of ['exported', 'dropped']) spans.inc({ result }, 0)
  return {
    count: (result, count) => spans.inc({ result }, count),
    register: (registry) => registry.registerMetric(spans),
  }
}
