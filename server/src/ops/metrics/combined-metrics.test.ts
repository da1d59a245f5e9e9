import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { addTotals, combineMetrics, keepTotals, type MetricReport } from './combined-metrics.ts'

function createReport(value: number): Promise<MetricReport> {
  const registry = new Registry()
  const registers = [registry]
  new Counter({ name: 'requests_total', help: 'h', registers }).inc(value)
  new Gauge({ name: 'connections', help: 'h', registers }).set(value)
  new Gauge({ name: 'store_up', help: 'h', registers, aggregator: 'min' }).set(value)
  new Histogram({ name: 'write_seconds', help: 'h', registers, buckets: [1, 10] }).observe(value)
  return registry.getMetricsAsJSON()
}

function createSummary(quantile: number, count: number): MetricReport {
  const values = [
    { labels: { quantile: 0.5, path: '/a' }, value: quantile },
    { metricName: 'duration_count', labels: { path: '/a' }, value: count },
  ]
  return [{ name: 'duration', help: 'h', type: 'summary', aggregator: 'sum', values }] as never
}

describe('metrics of several processes', () => {
  it('counters, histograms and gauges are added up', async () => {
    const text = await combineMetrics([await createReport(2), await createReport(3)])
    expect(text).toContain('requests_total 5\n')
    expect(text).toContain('connections 5\n')
    expect(text).toContain('write_seconds_count 2\n')
    expect(text).toContain('write_seconds_sum 5\n')
    expect(text).toContain('write_seconds_bucket{le="10"} 2\n')
  })

  it('a gauge with its own rule is combined by that rule', async () => {
    const text = await combineMetrics([await createReport(2), await createReport(3)])
    expect(text).toContain('store_up 2\n')
  })

  it('the largest quantile of all processes is reported, and the counts are added up', async () => {
    const text = await combineMetrics([createSummary(0.2, 10), createSummary(0.7, 4)])
    expect(text).toContain('duration{quantile="0.5",path="/a"} 0.7\n')
    expect(text).toContain('duration_count{path="/a"} 14\n')
  })

  it('an ended process leaves its totals, but no gauges', async () => {
    const ended = addTotals(keepTotals(await createReport(2)), keepTotals(await createReport(5)))
    const text = await combineMetrics([await createReport(1), ended])
    expect(text).toContain('requests_total 8\n')
    expect(text).toContain('connections 1\n')
  })
})
