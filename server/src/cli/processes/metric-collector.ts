import { addTotals, keepTotals, type MetricReport } from '../../ops/metrics/combined-metrics.ts'

/** A process that can be asked for its metrics. */
export type MetricSource = Readonly<{ number: number; requestReport(id: number): void }>

type Collection = {
  readonly awaited: Set<number>
  readonly reports: Map<number, MetricReport>
  readonly finish: () => void
}

/**
 * Collects the metrics of all processes, for the process that answers a scrape. Keeps the last report of each
 * process: after its end its totals remain part of the sums.
 */
export class MetricCollector {
  readonly #waitMsMax: number
  readonly #collections = new Map<number, Collection>()
  readonly #last = new Map<number, MetricReport>()
  /** The totals of all processes that have ended. */
  #ended: MetricReport = []
  #nextId = 1

  constructor(waitMsMax: number) {
    this.#waitMsMax = waitMsMax
  }

  /** A process that does not answer in time is represented by the totals of its last report. */
  collect(sources: readonly MetricSource[]): Promise<readonly MetricReport[]> {
    const id = this.#nextId++
    return new Promise((resolve) => {
      const finish = (): void => {
        if (!this.#collections.delete(id)) return
        clearTimeout(timer)
        const missing = [...collection.awaited].map((number) => keepTotals(this.#last.get(number) ?? []))
        resolve([...collection.reports.values(), ...missing, this.#ended])
      }
      const timer = setTimeout(finish, this.#waitMsMax)
      const collection: Collection = {
        awaited: new Set(sources.map(({ number }) => number)),
        reports: new Map(),
        finish,
      }
      this.#collections.set(id, collection)
      for (const source of sources) source.requestReport(id)
      if (sources.length === 0) finish()
    })
  }

  addReport(number: number, id: number, report: MetricReport): void {
    this.#last.set(number, report)
    const collection = this.#collections.get(id)
    if (collection === undefined || !collection.awaited.delete(number)) return
    collection.reports.set(number, report)
    if (collection.awaited.size === 0) collection.finish()
  }

  /** Call it when a process has ended. */
  endSource(number: number): void {
    const last = this.#last.get(number)
    this.#last.delete(number)
    if (last !== undefined) this.#ended = addTotals(this.#ended, keepTotals(last))
    for (const collection of [...this.#collections.values()]) {
      if (collection.awaited.delete(number) && collection.awaited.size === 0) collection.finish()
    }
  }
}
