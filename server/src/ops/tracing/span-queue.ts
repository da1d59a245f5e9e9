/**
 * The spans that wait to be exported: at most `queueMax`, including those of an export in progress. Further
 * spans are dropped and counted, so that a collector that is slow or away costs a bounded amount of memory.
 */
import { BatchSpanProcessor, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace'
import type { TracingOptions } from './tracing.ts'

type QueueOptions = Pick<TracingOptions, 'url' | 'queueMax' | 'exportMs' | 'metrics' | 'log'>

const batchMax = 512
/** `ExportResultCode.SUCCESS` of the SDK. */
const success = 0

export function createSpanQueue(exporter: SpanExporter, options: QueueOptions): SpanProcessor {
  const { url, queueMax, exportMs, metrics, log } = options
  let waiting = 0
  let isFailing = false
  const report = (error: Error | undefined): void => {
    if (error === undefined && isFailing) log.info({ url }, 'spans are exported again')
    if (error !== undefined && !isFailing) {
      log.warn(
        { url, reason: error.message },
        'spans cannot be exported; they are dropped until it works again',
      )
    }
    isFailing = error !== undefined
  }
  const counted: SpanExporter = {
    export: (spans, onEnd) =>
      exporter.export(spans, (result) => {
        waiting -= spans.length
        const isExported = result.code === success
        metrics.count(isExported ? 'exported' : 'dropped', spans.length)
        report(isExported ? undefined : (result.error ?? new Error('the collector refused them')))
        onEnd(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
  const batches = new BatchSpanProcessor({
    exporter: counted,
    maxQueueSize: queueMax,
    maxExportBatchSize: Math.min(batchMax, queueMax),
    scheduledDelayMillis: exportMs,
  })
  return {
    onStart: () => {},
    onEnd: (span) => {
      if (waiting >= queueMax) {
        metrics.count('dropped', 1)
        return
      }
      waiting++
      batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  }
}
