/** Counts attempts per consumer and minute, and stores the counts from time to time. */
import { type Clock, type Instant, usPerSecond } from '../../../core/time/instant.ts'
import { countLatency, newLatencies } from '../../../core/webhook/delivery/latency.ts'
import type { Engine } from '../../../engine/engine.ts'

type Figures = { consumer: number; minute: Instant; delivered: number; failed: number; latencies: number[] }

const minuteUs = 60 * usPerSecond
/** Minutes of consumers that one write stores. */
const figuresMax = 1_000

export class FigureRecorder {
  readonly #writer: string
  readonly #clock: Clock
  readonly #engine: () => Pick<Engine, 'write'>
  /** The present minute of each consumer. */
  readonly #current = new Map<number, Figures>()
  readonly #changed = new Set<Figures>()

  /** `writer`: different for each start of a server. */
  constructor(writer: string, clock: Clock, engine: () => Pick<Engine, 'write'>) {
    this.#writer = writer
    this.#clock = clock
    this.#engine = engine
  }

  count(consumer: number, isDelivered: boolean, latencyMs: number): void {
    const minute = Math.floor(this.#clock.now() / minuteUs) * minuteUs
    let figures = this.#current.get(consumer)
    // After a step of the clock back, attempts count in the later minute: a minute that starts again at 0
    // would replace what was stored for it.
    if (figures === undefined || figures.minute < minute) {
      figures = { consumer, minute, delivered: 0, failed: 0, latencies: newLatencies() }
      this.#current.set(consumer, figures)
    }
    if (isDelivered) figures.delivered += 1
    else figures.failed += 1
    countLatency(figures.latencies, latencyMs)
    this.#changed.add(figures)
  }

  async pass(): Promise<void> {
    const changed = [...this.#changed].slice(0, figuresMax)
    if (changed.length === 0) return
    for (const figures of changed) this.#changed.delete(figures)
    const figures = changed.map((each) => ({ ...each, latencies: [...each.latencies] }))
    try {
      await this.#engine().write([{ op: 'record-delivery-figures', writer: this.#writer, figures }])
    } catch (error) {
      for (const each of changed) this.#changed.add(each)
      throw error
    }
    const minute = Math.floor(this.#clock.now() / minuteUs) * minuteUs
    for (const [consumer, each] of this.#current) {
      if (each.minute < minute) this.#current.delete(consumer)
    }
  }
}
