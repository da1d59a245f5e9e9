/** The calls of producers and workers, with a span for each. Used only if tracing is configured. */
import { addTraceHeaders, readTraceHeaders } from '../../core/trace/trace-headers.ts'
import { linksMax, type OpenSpan, type SpanOutcome, type Tracing } from '../../core/trace/tracing.ts'
import { KnownError } from '../../errors.ts'
import type { Engine, LeasedItems, LeaseOptions } from '../engine.ts'
import type { LeasedTraces } from './leased-traces.ts'

export type ItemCalls = Pick<Engine, 'produce' | 'lease' | 'complete' | 'retry' | 'extend'>

export function traceItemCalls(calls: ItemCalls, tracing: Tracing, leased: LeasedTraces): ItemCalls {
  return {
    extend: calls.extend,
    produce: async (queue, items, options = {}) => {
      const links = items.slice(0, linksMax).map(({ headers = [] }) => readTraceHeaders(headers))
      const span = tracing.start({ operation: 'produce', destination: queue, parent: options.trace, links })
      // A new trace that is not sampled leads nowhere. The trace of a client continues in any case.
      const isPassedOn = span.context.isSampled || options.trace !== undefined
      const sent = isPassedOn ? addTraceHeaders(items, span.context) : items
      // The headers are added here, so the call must not add those of its caller.
      const { trace: _, ...others } = options
      return endWith(span, calls.produce(queue, sent, others), ({ ids, partition }) => ({ ids, partition }))
    },
    lease: (queue, options) => traceLease(calls, tracing, leased, queue, options),
    complete: async (queue, partition, ids, options = {}) => {
      const startedAtMs = performance.now()
      const done = calls.complete(queue, partition, ids, options)
      const links = leased.take(ids)
      const { trace: parent } = options
      const span = tracing.start({ operation: 'complete', destination: queue, parent, links, startedAtMs })
      return endWith(span, done, () => ({ ids, partition }))
    },
    retry: async (queue, partition, items, options = {}) => {
      const ids = items.map(({ id }) => id)
      const links = ids.map((id) => leased.get(id))
      const { trace: parent } = options
      const span = tracing.start({ operation: 'retry', destination: queue, parent, links })
      // The trace of an item that dies is still needed while the call is written.
      return endWith(span, calls.retry(queue, partition, items, options), () => ({ ids, partition })).finally(
        () => leased.take(ids),
      )
    },
  }
}

/**
 * The span of a lease starts when the call arrived, and is created when items were found: most calls of an
 * idle worker end without items, and such calls have no span.
 */
async function traceLease(
  calls: Pick<ItemCalls, 'lease'>,
  tracing: Tracing,
  leased: LeasedTraces,
  queue: string,
  options: LeaseOptions,
): Promise<LeasedItems> {
  const startedAtMs = performance.now()
  const start = { operation: 'lease', destination: queue, parent: options.trace, startedAtMs } as const
  let found: LeasedItems
  try {
    found = await calls.lease(queue, options)
  } catch (error) {
    if (!isExpected(error)) tracing.start(start).end({ error })
    throw error
  }
  const { partition, items } = found
  const span = tracing.start({ ...start, links: leased.add(items) })
  span.end({ ids: items.map(({ id }) => id), partition })
  return found
}

/** The worker left, or no item arrived in time. */
function isExpected(error: unknown): boolean {
  return !(error instanceof KnownError) || error.code === 'LEASE_TIMEOUT'
}

async function endWith<T>(
  span: OpenSpan,
  work: Promise<T>,
  describe: (result: T) => SpanOutcome,
): Promise<T> {
  try {
    const result = await work
    span.end(describe(result))
    return result
  } catch (error) {
    span.end({ error })
    throw error
  }
}
