/** The messages between the supervisor and the processes that it started, sent as JSON. */
import type { MetricReport } from '../../ops/metrics/combined-metrics.ts'

export type ToSupervisor =
  /** The process serves requests. */
  | Readonly<{ type: 'serving'; url: string }>
  /** A client asks this process for the metrics of all processes. */
  | Readonly<{ type: 'metrics-wanted'; id: number }>
  | Readonly<{ type: 'metrics'; id: number; report: MetricReport }>

export type ToProcess =
  /** Stop in order. */
  | Readonly<{ type: 'stop' }>
  /** Answer with `metrics`. */
  | Readonly<{ type: 'report-metrics'; id: number }>
  /** The answer to `metrics-wanted`. */
  | Readonly<{ type: 'all-metrics'; id: number; reports: readonly MetricReport[] }>
