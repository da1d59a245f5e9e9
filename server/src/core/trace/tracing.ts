/**
 * The port through which other layers report spans. `ops/tracing/` implements it. Without a configured
 * collector there is no implementation: callers get undefined and do nothing, not even allocate.
 */
import type { TraceContext } from './trace-context.ts'

export interface Tracing {
  /** Never throws and never waits. */
  start(span: NewSpan): OpenSpan
}

/** The name of a span is its operation and its destination: `produce orders`. */
export type SpanOperation =
  | 'produce'
  | 'lease'
  | 'complete'
  | 'retry'
  | 'dead-letter'
  | 'redrive'
  | 'push'
  | 'ingest'
  | 'replay'

export type NewSpan = Readonly<{
  operation: SpanOperation
  /** The queue, the channel or the topic. */
  destination: string
  /** The span that caused this one; undefined: the span starts a trace. */
  parent?: TraceContext | undefined
  /** The traces of the items. Traces that are not sampled are left out. */
  links?: readonly (TraceContext | undefined)[]
  /** As a time of `performance.now()`. Default: now. */
  startedAtMs?: number
}>

export interface OpenSpan {
  /** For the items, and for the other system. */
  readonly context: TraceContext
  end(outcome?: SpanOutcome): void
}

export type SpanOutcome = Readonly<{
  /** The ids of the items. Only the number of several items is reported. */
  ids?: readonly string[]
  /** The number of items, if their ids are not known. */
  count?: number
  partition?: number
  attributes?: Readonly<Record<string, string | number>>
  /** The operation failed. */
  error?: unknown
  /** As a time of `performance.now()`. Default: now. */
  endedAtMs?: number
}>

/** A link per item is enough to find an item, and a batch has up to 65,536. */
export const linksMax = 128
