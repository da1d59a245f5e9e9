/**
 * Counts and times every request. The metrics library could do it, but its cost per request is noticeable on
 * the busiest routes: it processes the labels each time and keeps its quantiles in a tree. Here a request
 * costs two additions and an entry in Node's own histogram, and the library only renders the results.
 */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

/** One answered request, as the HTTP edge reports it. */
export type AnsweredRequest = Readonly<{ method: string; path: string; status: number; ms: number }>

export type RouteFigures = Readonly<{
  path: string
  count: number
  secondsSum: number
  /** In seconds, in the requested order; 0 if there was no recent request. */
  quantiles: readonly number[]
  answers: readonly Readonly<{ method: string; status: number; count: number }>[]
}>

type RouteTotals = {
  count: number
  msSum: number
  recent: RecordableHistogram
  older: RecordableHistogram
  /** When `recent` becomes `older`, by the clock. */
  rotateAtMs: number
  readonly byMethod: Map<string, Map<number, number>>
}

/** Quantiles cover the last one to two of these intervals. */
const intervalMs = 5 * 60 * 1_000
const usMax = 60 * 60 * 1_000_000

export class AnsweredRequests {
  readonly #nowMs: () => number
  readonly #routes = new Map<string, RouteTotals>()

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  observe({ method, path, status, ms }: AnsweredRequest): void {
    const totals = this.#routes.get(path) ?? this.#addRoute(path)
    totals.count++
    totals.msSum += ms
    this.#rotate(totals)
    totals.recent.record(Math.min(Math.max(Math.round(ms * 1_000), 1), usMax))
    let byStatus = totals.byMethod.get(method)
    if (byStatus === undefined) {
      byStatus = new Map()
      totals.byMethod.set(method, byStatus)
    }
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
  }

  /** `quantiles`: each between 0 and 1. */
  read(quantiles: readonly number[]): RouteFigures[] {
    return [...this.#routes].map(([path, totals]) => {
      this.#rotate(totals)
      const durations = createDurationHistogram()
      durations.add(totals.older)
      durations.add(totals.recent)
      const isEmpty = durations.count === 0
      return {
        path,
        count: totals.count,
        secondsSum: totals.msSum / 1_000,
        quantiles: quantiles.map((part) => (isEmpty ? 0 : durations.percentile(part * 100) / 1e6)),
        answers: [...totals.byMethod].flatMap(([method, byStatus]) =>
          [...byStatus].map(([status, count]) => ({ method, status, count })),
        ),
      }
    })
  }

  #addRoute(path: string): RouteTotals {
    const totals = {
      count: 0,
      msSum: 0,
      recent: createDurationHistogram(),
      older: createDurationHistogram(),
      rotateAtMs: this.#nowMs() + intervalMs,
      byMethod: new Map(),
    }
    this.#routes.set(path, totals)
    return totals
  }

  #rotate(totals: RouteTotals): void {
    const nowMs = this.#nowMs()
    if (nowMs < totals.rotateAtMs) return
    const { recent, older } = totals
    older.reset()
    totals.recent = older
    totals.older = recent
    // The last request is longer ago than a whole interval, so its entries are outdated as well.
    if (nowMs >= totals.rotateAtMs + intervalMs) recent.reset()
    totals.rotateAtMs = nowMs + intervalMs
  }
}

/** Two significant digits: more would only show noise. */
function createDurationHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: usMax, figures: 2 })
}
