/**
 * Adds up the metrics of the processes that serve one port. Each metric states how it is combined (its
 * `aggregator`; the default is the sum). Quantiles cannot be added, so the largest one is reported.
 */
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client'

/** The metrics of one process, as the library exports them. They can be sent as JSON. */
export type MetricReport = readonly MetricObjectWithValues<MetricValue<string>>[]

/** Renders the metrics of all processes as one Prometheus text. */
export async function combineMetrics(reports: readonly MetricReport[]): Promise<string> {
  const largest = new Map<string, Map<string, MetricValue<string>>>()
  const summable = reports.map((report) =>
    report.map((metric) => {
      if (readType(metric) !== 'summary') return metric
      for (const row of metric.values.filter(isQuantile)) keepLargest(largest, metric.name, row)
      return { ...metric, values: metric.values.filter((row) => !isQuantile(row)) }
    }),
  )
  const combined = AggregatorRegistry.aggregate(summable)
  for (const [name, quantiles] of largest) {
    const metric = await combined.getSingleMetric(name)?.get()
    const values = metric?.values as MetricValue<string>[] | undefined
    values?.unshift(...quantiles.values())
  }
  return combined.metrics()
}

/**
 * The totals of a process that ended. They stay part of the sums: otherwise the sums would decrease when the
 * process is replaced, and Prometheus would take the rest for new events.
 */
export function keepTotals(report: MetricReport): MetricReport {
  return report
    .filter((metric) => readType(metric) !== 'gauge')
    .map((metric) => ({ ...metric, values: metric.values.filter((row) => !isQuantile(row)) }))
}

/** Adds up two results of `keepTotals`. */
export function addTotals(a: MetricReport, b: MetricReport): MetricReport {
  const metrics = AggregatorRegistry.aggregate([a, b]).getMetricsAsArray() as unknown as MetricReport
  return metrics.map(({ name, help, type, aggregator, values }) => ({
    name,
    help,
    type,
    aggregator,
    values,
  })) as never
}

/** The declarations of the library have an enum of numbers, but a report contains words. */
function readType({ type }: MetricReport[number]): string {
  return String(type)
}

function isQuantile({ labels }: MetricValue<string>): boolean {
  return labels.quantile !== undefined
}

function keepLargest(
  largest: Map<string, Map<string, MetricValue<string>>>,
  name: string,
  row: MetricValue<string>,
): void {
  const rows = largest.get(name) ?? new Map<string, MetricValue<string>>()
  largest.set(name, rows)
  const key = JSON.stringify(Object.entries(row.labels).sort())
  const before = rows.get(key)
  if (before === undefined || row.value > before.value) rows.set(key, row)
}
