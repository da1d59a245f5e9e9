/**
 * Spans of committed writes: redrives, by whichever part of the server, and deaths of items. Used only if
 * tracing is configured.
 */
import type { QueueName } from '../../core/ids/ids.ts'
import { readTraceHeaders } from '../../core/trace/trace-headers.ts'
import { linksMax, type Tracing } from '../../core/trace/tracing.ts'
import type { ItemChange } from '../../storage/contract/items.ts'
import type { RedriveResult } from '../../storage/contract/letters.ts'
import type { Command, ResultOf, StoreReads } from '../../storage/contract/storage.ts'
import { readChanges } from '../events.ts'
import type { LeasedTraces } from './leased-traces.ts'

/** Called for each command of a committed write. The times are those of `performance.now()`. */
export type WriteObserver = (command: Command, result: unknown, startedAtMs: number) => void

export type TraceWritesOptions = Readonly<{
  tracing: Tracing
  storage: Pick<StoreReads, 'getLetters'>
  leased: LeasedTraces
  onError(error: unknown): void
}>

/** Reading the traces of letters must not pile up if a campaign sends faster than the store answers. */
const readsMax = 16

export function createWriteObserver(options: TraceWritesOptions): WriteObserver {
  let reads = 0
  return (command, result, startedAtMs) => {
    if (command.op === 'retry' || command.op === 'advance') {
      traceDeaths(options, readChanges(result as ResultOf<typeof command>))
    }
    if (command.op !== 'redrive') return
    const times = { startedAtMs, endedAtMs: performance.now() }
    for (const [queue, letterIds] of groupByTarget(result as ResultOf<typeof command>)) {
      reads++
      void traceRedrive(options, queue, letterIds, times, reads <= readsMax).finally(() => {
        reads--
      })
    }
  }
}

function groupByTarget(results: readonly RedriveResult[]): Map<QueueName, string[]> {
  const byTarget = new Map<QueueName, string[]>()
  for (const result of results) {
    if (!result.isStarted) continue
    const ids = byTarget.get(result.queue)
    if (ids === undefined) byTarget.set(result.queue, [result.letterId])
    else ids.push(result.letterId)
  }
  return byTarget
}

/** The letters are read after the redrive was answered, so that tracing delays no redrive. */
async function traceRedrive(
  { tracing, storage, onError }: TraceWritesOptions,
  destination: QueueName,
  ids: readonly string[],
  { startedAtMs, endedAtMs }: Readonly<{ startedAtMs: number; endedAtMs: number }>,
  isLinked: boolean,
): Promise<void> {
  const read = isLinked ? storage.getLetters(ids.slice(0, linksMax), 'head') : Promise.resolve([])
  const letters = await read.catch((error: unknown) => {
    onError(error)
    return []
  })
  const links = letters.map(({ headers }) => readTraceHeaders(headers))
  tracing.start({ operation: 'redrive', destination, links, startedAtMs }).end({ ids, endedAtMs })
}

/** A death is part of the trace of its item. */
function traceDeaths({ tracing, leased }: TraceWritesOptions, changes: readonly ItemChange[]): void {
  for (const { to, fromId, fromQueue, queue, id, failure } of changes) {
    if (to !== 'moved' && to !== 'dead' && to !== 'returned') continue
    const parent = leased.get(fromId)
    if (parent === undefined) continue
    tracing.start({ operation: 'dead-letter', destination: queue, parent }).end({
      ids: [id ?? fromId],
      attributes: { 'redrive.source_queue': fromQueue, 'redrive.error_code': failure?.errorCode ?? '' },
    })
  }
}
