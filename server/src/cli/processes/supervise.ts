/**
 * `redrive serve --processes N`: this process starts N processes that serve one port, and supervises them.
 *
 * - Start: the first process starts alone, because it migrates the store and reports a wrong setting only
 *   once. If a process ends before all of them serve, the start has failed and all end.
 * - Run: a process that ends is replaced, after a wait that grows with each early end.
 * - Stop: every process stops in order. A second signal ends all of them immediately.
 *
 * The processes share nothing but the port and the database: they are N servers on one PostgreSQL.
 */
import type { MetricReport } from '../../ops/metrics/combined-metrics.ts'
import type { StopSignal } from '../stop-signals.ts'
import type { ToSupervisor } from './messages.ts'
import { MetricCollector } from './metric-collector.ts'
import type { ProcessEnd, ServerProcess, StartProcess } from './server-process.ts'

export type SuperviseOptions = Readonly<{
  count: number
  startProcess: StartProcess
  stopRequested: Promise<StopSignal>
  /** All processes serve, at this URL. */
  onServing(url: string): void
  onLine(stream: 'stdout' | 'stderr', line: string): void
  warn(fields: Readonly<Record<string, unknown>>, sentence: string): void
  /** The limit of an orderly stop. After it, processes are killed. */
  stopMsMax: number
}>

/** A process that served for this long counts as healthy. */
const healthyMs = 60_000
const backoffMsMin = 1_000
const backoffMsMax = 30_000
/** How long a scrape waits for the metrics of the other processes. */
const metricsMsMax = 1_000

type Slot = {
  readonly number: number
  process: ServerProcess | undefined
  url: string | undefined
  startedAtMs: number
  backoffMs: number
  timer: NodeJS.Timeout | undefined
}

/** Resolves with the exit code when all processes have ended. */
export function supervise(options: SuperviseOptions): Promise<number> {
  const supervisor = new Supervisor(options)
  void options.stopRequested.then(() => supervisor.stop(0))
  return supervisor.run()
}

class Supervisor {
  readonly #options: SuperviseOptions
  readonly #slots: readonly Slot[]
  readonly #metrics = new MetricCollector(metricsMsMax)
  #isServing = false
  #exitCode: number | undefined
  #resolveEnd: (exitCode: number) => void = () => {}
  #killTimer: NodeJS.Timeout | undefined

  constructor(options: SuperviseOptions) {
    this.#options = options
    this.#slots = Array.from({ length: options.count }, (_, index) => ({
      number: index + 1,
      process: undefined,
      url: undefined,
      startedAtMs: 0,
      backoffMs: backoffMsMin,
      timer: undefined,
    }))
  }

  run(): Promise<number> {
    return new Promise((resolve) => {
      this.#resolveEnd = resolve
      const [first] = this.#slots
      if (first !== undefined) this.#start(first)
    })
  }

  /** Asks all processes to stop. The first exit code that is given counts. */
  stop(exitCode: number): void {
    if (this.#exitCode !== undefined) return
    this.#exitCode = exitCode
    for (const slot of this.#slots) {
      clearTimeout(slot.timer)
      slot.process?.send({ type: 'stop' })
    }
    this.#killTimer = setTimeout(() => {
      for (const { process } of this.#slots) process?.kill()
    }, this.#options.stopMsMax)
    this.#endIfEmpty()
  }

  #start(slot: Slot): void {
    slot.startedAtMs = performance.now()
    slot.url = undefined
    slot.process = this.#options.startProcess(slot.number, {
      onMessage: (message) => this.#receive(slot, message),
      onEnd: (end) => this.#replace(slot, end),
      onLine: this.#options.onLine,
    })
  }

  #receive(slot: Slot, message: ToSupervisor): void {
    switch (message.type) {
      case 'serving':
        this.#setServing(slot, message.url)
        break
      case 'metrics-wanted':
        void this.#collectMetrics().then((reports) =>
          slot.process?.send({ type: 'all-metrics', id: message.id, reports }),
        )
        break
      case 'metrics':
        this.#metrics.addReport(slot.number, message.id, message.report)
        break
    }
  }

  #setServing(slot: Slot, url: string): void {
    slot.url = url
    if (this.#exitCode !== undefined || this.#isServing) return
    for (const other of this.#slots) if (other.process === undefined) this.#start(other)
    if (this.#slots.some((other) => other.url === undefined)) return
    this.#isServing = true
    this.#options.onServing(url)
  }

  #collectMetrics(): Promise<readonly MetricReport[]> {
    const serving = this.#slots.flatMap(({ process, url, number }) =>
      process === undefined || url === undefined
        ? []
        : [{ number, requestReport: (id: number) => process.send({ type: 'report-metrics', id }) }],
    )
    return this.#metrics.collect(serving)
  }

  #replace(slot: Slot, end: ProcessEnd): void {
    const pid = slot.process?.pid
    slot.process = undefined
    slot.url = undefined
    this.#metrics.endSource(slot.number)
    if (this.#exitCode !== undefined) {
      this.#endIfEmpty()
      return
    }
    if (!this.#isServing) {
      // The process has reported the reason itself.
      this.stop(end.code === null || end.code === 0 ? 1 : end.code)
      return
    }
    const wasHealthy = performance.now() - slot.startedAtMs >= healthyMs
    const waitMs = wasHealthy ? backoffMsMin : slot.backoffMs
    slot.backoffMs = Math.min(waitMs * 2, backoffMsMax)
    this.#options.warn(
      { process: slot.number, pid, exit_code: end.code, signal: end.signal, restart_ms: waitMs },
      'a process of the server ended and is replaced; the other processes continue',
    )
    slot.timer = setTimeout(() => this.#start(slot), waitMs)
  }

  #endIfEmpty(): void {
    if (this.#exitCode === undefined || this.#slots.some(({ process }) => process !== undefined)) return
    clearTimeout(this.#killTimer)
    this.#resolveEnd(this.#exitCode)
  }
}
