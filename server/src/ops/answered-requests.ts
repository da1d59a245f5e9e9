/**
 * What is counted of every request. The metrics library would do it, at a cost per request that is felt on
 * the busiest routes: it takes the labels apart each time and keeps its quantiles in a tree. Here a request is
 * two additions and an entry in Node's own histogram, and the library only writes down what came of it.
 */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

/** What the HTTP edge tells about one answered request. */
export type AnsweredRequest = Readonly<{ method: string; path: string; status: number; ms: number }>

export type RouteFigures = Readonly<{
  path: string
  count: number
  secondsSum: number
  /** In seconds, in the order asked for; 0 where nobody asked lately. */
  quantiles: readonly number[]
  answers: readonly Readonly<{ method: string; status: number; count: number }>[]
}>

type Kept = {
  count: number
  msSum: number
  recent: RecordableHistogram
  older: RecordableHistogram
  /** When the recent ones become the older ones. */
  turnAtMs: number
  readonly byMethod: Map<string, Map<number, number>>
}

/** Quantiles are over the last one to two of these. */
const halfMs = 5 * 60 * 1_000
const usMax = 60 * 60 * 1_000_000

export class AnsweredRequests {
  readonly #nowMs: () => number
  readonly #routes = new Map<string, Kept>()

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  observe({ method, path, status, ms }: AnsweredRequest): void {
    const kept = this.#routes.get(path) ?? this.#begin(path)
    kept.count++
    kept.msSum += ms
    this.#turn(kept)
    kept.recent.record(Math.min(Math.max(Math.round(ms * 1_000), 1), usMax))
    let byStatus = kept.byMethod.get(method)
    if (byStatus === undefined) {
      byStatus = new Map()
      kept.byMethod.set(method, byStatus)
    }
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
  }

  /** `quantiles`: each between 0 and 1. */
  read(quantiles: readonly number[]): RouteFigures[] {
    return [...this.#routes].map(([path, kept]) => {
      this.#turn(kept)
      const lately = histogram()
      lately.add(kept.older)
      lately.add(kept.recent)
      return {
        path,
        count: kept.count,
        secondsSum: kept.msSum / 1_000,
        quantiles: quantiles.map((part) => (lately.count === 0 ? 0 : lately.percentile(part * 100) / 1e6)),
        answers: [...kept.byMethod].flatMap(([method, byStatus]) =>
          [...byStatus].map(([status, count]) => ({ method, status, count })),
        ),
      }
    })
  }

  #begin(path: string): Kept {
    const kept = {
      count: 0,
      msSum: 0,
      recent: histogram(),
      older: histogram(),
      turnAtMs: this.#nowMs() + halfMs,
      byMethod: new Map(),
    }
    this.#routes.set(path, kept)
    return kept
  }

  #turn(kept: Kept): void {
    const nowMs = this.#nowMs()
    if (nowMs < kept.turnAtMs) return
    const { recent, older } = kept
    older.reset()
    kept.recent = older
    kept.older = recent
    // Nobody asked for so long that those are old, too.
    if (nowMs >= kept.turnAtMs + halfMs) recent.reset()
    kept.turnAtMs = nowMs + halfMs
  }
}

/** To two digits: more would be precise about chance. */
function histogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: usMax, figures: 2 })
}
