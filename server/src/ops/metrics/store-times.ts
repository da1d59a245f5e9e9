/** How long the store took for writes and reads, and how much a write did. */
import { Histogram } from 'prom-client'

export type StoreTimes = Readonly<{
  writes: Histogram<'command'>
  reads: Histogram<'read'>
  batches: Histogram<'command'>
}>

/** In seconds. A commit takes about 1 ms on a local disk; callers wait at most 3 s. */
const secondBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const sizeBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]

/** The histograms are in no registry yet, because the store is opened before the metrics are created. */
export function createStoreTimes(): StoreTimes {
  return {
    writes: new Histogram({
      name: 'redrive_store_write_seconds',
      help: 'Seconds that the store took for a write, by the kind of its main command.',
      labelNames: ['command'],
      buckets: secondBuckets,
      registers: [],
    }),
    reads: new Histogram({
      name: 'redrive_store_read_seconds',
      help: 'Seconds that the store took for a read, by its kind.',
      labelNames: ['read'],
      buckets: secondBuckets,
      registers: [],
    }),
    batches: new Histogram({
      name: 'redrive_store_write_batch_size',
      help: 'Commands that were written in one transaction, by the kind of the main command.',
      labelNames: ['command'],
      buckets: sizeBuckets,
      registers: [],
    }),
  }
}

/** Calls that are no reads, or that are measured elsewhere. */
const unmeasured: ReadonlySet<string> = new Set(['write', 'announce', 'onAnnounced', 'close'])

/** The same store, which reports how long each read took, also if it was rejected. */
export function measureReads<S extends object>(
  storage: S,
  onRead: (read: string, seconds: number) => void,
): S {
  const calls = new Map<string | symbol, unknown>()
  return new Proxy(storage, {
    get: (target, name) => {
      const known = calls.get(name)
      if (known !== undefined) return known
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      const bound = value.bind(target) as (...args: readonly unknown[]) => unknown
      const call = typeof name === 'symbol' || unmeasured.has(name) ? bound : measure(name, bound, onRead)
      calls.set(name, call)
      return call
    },
  })
}

function measure(
  name: string,
  read: (...args: readonly unknown[]) => unknown,
  onRead: (read: string, seconds: number) => void,
) {
  return (...args: readonly unknown[]): unknown => {
    const startedAt = performance.now()
    const report = (): void => onRead(name, (performance.now() - startedAt) / 1_000)
    const result = read(...args)
    if (result instanceof Promise) result.then(report, report)
    return result
  }
}
