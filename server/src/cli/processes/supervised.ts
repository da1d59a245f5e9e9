/** The side of a process that a supervisor started: see `supervise.ts`. */
import type { MetricReport } from '../../ops/metrics/combined-metrics.ts'
import type { StopSignal, StopSignals } from '../stop-signals.ts'
import type { ToProcess, ToSupervisor } from './messages.ts'

type Channel = Pick<NodeJS.Process, 'on' | 'off'> & { send?: NodeJS.Process['send'] }

export interface Supervised {
  reportServing(url: string): void
  /** Rejects if the supervisor does not answer in time. */
  collectMetrics(): Promise<readonly MetricReport[]>
  /** Answers the supervisor from now on. */
  reportMetrics(read: () => Promise<MetricReport>): void
  close(): void
}

const collectMsMax = 3_000

export function createSupervised(channel: Channel): Supervised {
  let nextId = 1
  let readMetrics: () => Promise<MetricReport> = async () => []
  const waiting = new Map<number, (reports: readonly MetricReport[]) => void>()
  const send = (message: ToSupervisor): void => {
    channel.send?.(message, undefined, undefined, () => undefined)
  }
  const receive = (message: ToProcess): void => {
    if (message.type === 'report-metrics') {
      void readMetrics().then((report) => send({ type: 'metrics', id: message.id, report }))
    } else if (message.type === 'all-metrics') {
      waiting.get(message.id)?.(message.reports)
      waiting.delete(message.id)
    }
  }
  channel.on('message', receive as never)
  return {
    reportServing: (url) => send({ type: 'serving', url }),
    collectMetrics: () =>
      new Promise((resolve, reject) => {
        const id = nextId++
        const timer = setTimeout(() => {
          waiting.delete(id)
          reject(new Error(`the supervisor did not collect the metrics within ${collectMsMax} ms`))
        }, collectMsMax)
        waiting.set(id, (reports) => {
          clearTimeout(timer)
          resolve(reports)
        })
        send({ type: 'metrics-wanted', id })
      }),
    reportMetrics: (read) => {
      readMetrics = read
    },
    close: () => channel.off('message', receive as never),
  }
}

/**
 * Listens for the stop of the supervisor. A terminal and a service manager send their signal to every
 * process, in addition to the stop of the supervisor. So SIGINT is ignored here, and SIGTERM counts once. A
 * second signal ends the supervisor, and with it this process.
 */
export function listenForSupervisedStop(channel: Channel): StopSignals {
  let resolveFirst: (signal: StopSignal) => void = () => {}
  const first = new Promise<StopSignal>((resolve) => {
    resolveFirst = resolve
  })
  const ignore = (): void => {}
  const onTerm = (): void => resolveFirst('SIGTERM')
  const onMessage = (message: ToProcess): void => {
    if (message.type === 'stop') resolveFirst('SIGTERM')
  }
  channel.on('SIGINT', ignore)
  channel.on('SIGTERM', onTerm)
  channel.on('message', onMessage as never)
  return {
    first,
    release: () => {
      channel.off('SIGINT', ignore)
      channel.off('SIGTERM', onTerm)
      channel.off('message', onMessage as never)
    },
  }
}
