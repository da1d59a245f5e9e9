/**
 * Metrics of workers, of problems that the watch found, and totals of all servers. They come from the store
 * as of the last check, so they are the same on every server.
 */
import { Counter, Gauge, type Registry } from 'prom-client'
import { usPerSecond } from '../../core/time/instant.ts'
import { findingRules, severities } from '../../core/watching/findings.ts'
import { workerStates } from '../../core/watching/worker.ts'
import type { WatchReport } from '../watching/evaluate.ts'
import { labelValuesMax, otherLabel } from './labelled-totals.ts'

export interface WorkerMetrics {
  /** Null: the workers were not checked yet, and the metrics have no values. */
  set(report: WatchReport | null): void
}

export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  const parts = [
    createHeartbeats(registry),
    createStates(registry),
    createFindings(registry),
    createRetries(registry),
    createTotals(registry),
  ]
  return {
    set: (report) => {
      for (const set of parts) set(report)
    },
  }
}

type Set = (report: WatchReport | null) => void

function createFindings(registry: Registry): Set {
  const gauge = new Gauge({
    name: 'redrive_findings',
    help: 'Present problems of workers and consumer groups, by rule and severity.',
    labelNames: ['rule', 'severity'],
    registers: [registry],
  })
  return (report) => {
    gauge.reset()
    if (report === null) return
    for (const rule of findingRules)
      for (const severity of severities)
        gauge.set({ rule, severity }, report.findingCounts.get(rule)?.[severity] ?? 0)
  }
}

function createTotals(registry: Registry): Set {
  const registers = [registry]
  const replayed = new Counter({
    name: 'worker_dlq_replayed_total',
    help: 'Dead letters that were redriven, on all servers.',
    registers,
  })
  const outcomes = new Counter({
    name: 'redrive_redrive_outcomes_total',
    help: 'Redrives that ended, on all servers, by outcome: resolved, failed, unknown.',
    labelNames: ['outcome'],
    registers,
  })
  return (report) => {
    replayed.reset()
    outcomes.reset()
    // A zero would look like a restart of the counter.
    if (report === null) replayed.remove()
    for (const { name, label, count } of report?.records.totals ?? []) {
      if (name === 'letters-redriven') replayed.inc(count)
      if (name === 'redrives-ended') outcomes.inc({ outcome: label }, count)
    }
  }
}

function createHeartbeats(registry: Registry): Set {
  const gauge = new Gauge({
    name: 'worker_heartbeat_timestamp',
    help: 'Unix time of the last heartbeat of a worker that runs or is missing, by the clock of the store. (others): the oldest of the workers without a series.',
    labelNames: ['worker', 'worker_instance', 'namespace'],
    registers: [registry],
  })
  return (report) => {
    gauge.reset()
    for (const { namespace, type, instanceId, at } of report?.heartbeats ?? [])
      gauge.set({ worker: type, worker_instance: instanceId, namespace }, at / usPerSecond)
    const others = [...(report?.otherHeartbeats ?? [])].toSorted(([, a], [, b]) => a - b)
    for (const [type, at] of others.slice(0, labelValuesMax))
      gauge.set({ worker: type, worker_instance: otherLabel, namespace: otherLabel }, at / usPerSecond)
  }
}

function createStates(registry: Registry): Set {
  const gauge = new Gauge({
    name: 'redrive_workers',
    help: 'Known workers by type and state: RUNNING, DRAINING, STOPPED, MISSING.',
    labelNames: ['worker', 'state'],
    registers: [registry],
  })
  return (report) => {
    gauge.reset()
    // Types in their order, so that all servers show the same ones.
    const types = [...(report?.workerCounts ?? [])].toSorted(([a], [b]) => (a < b ? -1 : 1))
    for (const [at, [type, counts]] of types.entries()) {
      const worker = at < labelValuesMax ? type : otherLabel
      for (const state of workerStates) gauge.inc({ worker, state }, counts[state])
    }
  }
}

/** The store keeps a bounded number of errors per type of worker. */
const retriesMax = 2_000

function createRetries(registry: Registry): Set {
  const counter = new Counter({
    name: 'worker_retry_count_total',
    help: 'Failed attempts that workers reported, by type of worker and error.',
    labelNames: ['worker', 'error'],
    registers: [registry],
  })
  return (report) => {
    counter.reset()
    for (const [at, { type, error, count }] of (report?.records.retries ?? []).entries()) {
      const labels = at < retriesMax ? { worker: type, error } : { worker: otherLabel, error: otherLabel }
      counter.inc(labels, count)
    }
  }
}
