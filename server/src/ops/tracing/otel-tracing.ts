/** Creates spans with the OpenTelemetry SDK and exports them in batches over OTLP. */
import {
  createTraceState,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import { ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace'
import type { TraceContext } from '../../core/trace/trace-context.ts'
import { linksMax, type NewSpan, type OpenSpan, type SpanOutcome } from '../../core/trace/tracing.ts'
import { describeError, describeOutcome, describeSpan } from './span-attributes.ts'
import { createSpanQueue } from './span-queue.ts'
import type { RunningTracing, TracingOptions } from './tracing.ts'

/** A collector that does not answer must not delay the stop of the server for longer. */
const stopMsMax = 2_000
const exportTimeoutMs = 10_000

export function createOtelTracing(options: TracingOptions): RunningTracing {
  const exporter = new OTLPTraceExporter({
    url: options.url,
    headers: options.readHeaders,
    timeoutMillis: exportTimeoutMs,
  })
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({
        'service.name': options.serviceName,
        'service.version': options.version,
        'service.instance.id': options.instance,
        ...options.resourceAttributes,
      }),
    ),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.sampleRatio) }),
    spanLimits: { linkCountLimit: linksMax, attributeValueLengthLimit: 1_000 },
    spanProcessors: [createSpanQueue(exporter, options)],
  })
  const tracer = provider.getTracer('redrive', options.version)
  return {
    start: (span) => {
      const { name, kind, attributes } = describeSpan(span)
      const parent =
        span.parent === undefined
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, toSpanContext(span.parent))
      const startTime = span.startedAtMs
      const given = { kind, attributes, links: toLinks(span), ...(startTime !== undefined && { startTime }) }
      return new StartedSpan(tracer.startSpan(name, given, parent))
    },
    stop: () => waitAtMost(stopMsMax, provider.shutdown()),
  }
}

class StartedSpan implements OpenSpan {
  readonly #span: Span
  readonly context: TraceContext

  constructor(span: Span) {
    this.#span = span
    const { traceId, spanId, traceFlags, traceState } = span.spanContext()
    const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0
    this.context = { traceId, spanId, isSampled, tracestate: traceState?.serialize() ?? '' }
  }

  end(outcome: SpanOutcome = {}): void {
    if (this.#span.isRecording()) {
      this.#span.setAttributes(describeOutcome(outcome))
      if (outcome.error !== undefined) {
        const { type, message } = describeError(outcome.error)
        this.#span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR, message })
      }
    }
    this.#span.end(outcome.endedAtMs)
  }
}

/** A trace that is not sampled is stored nowhere, so a link to it would lead nowhere. */
function toLinks({ links = [] }: NewSpan): Link[] {
  const linked: Link[] = []
  for (const context of links) {
    if (context?.isSampled !== true) continue
    if (linked.length === linksMax) break
    linked.push({ context: toSpanContext(context) })
  }
  return linked
}

function toSpanContext({ traceId, spanId, isSampled, tracestate }: TraceContext): SpanContext {
  return {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(tracestate !== '' && { traceState: createTraceState(tracestate) }),
  }
}

async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work.catch(() => undefined), timeout]).finally(() => clearTimeout(timer))
}
