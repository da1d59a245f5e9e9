import { Histogram } from 'prom-client'

/** How long writes to the store took, by the kind of their main command. */
export type StoreWriteTimes = Histogram<'command'>

/** In seconds. A commit takes about 1 ms on a local disk; callers wait at most 3 s. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** The histogram is in no registry yet, because the store is opened before the metrics are created. */
export function createStoreWriteTimes(): StoreWriteTimes {
  return new Histogram({
    name: 'redrive_store_write_seconds',
    help: 'Seconds that the store took for a write, by the kind of its main command.',
    labelNames: ['command'],
    buckets,
    registers: [],
  })
}
