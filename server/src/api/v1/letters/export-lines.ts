/** The lines of an export. */
import type { Item } from '../../../core/items/item.ts'
import type { LetterLabel } from '../../../letters/labels.ts'
import type { LetterBatch, Letters } from '../../../letters/letters.ts'
import type { LetterCursor, LetterOrder } from '../../../storage/contract/letters.ts'
import { classifyError } from '../../http/answers/classify-error.ts'
import { Capacity, createOverloadedError } from '../../http/connections/capacity.ts'
import { type Part, takeTurns, writeJsonParts } from '../../http/wire/json-parts.ts'
import { type PayloadView, viewLargePayload } from '../values/content-view.ts'
import { addCampaignNames } from './letter-detail.ts'
import { writeLetterCursor } from './letter-order.ts'
import { viewFailures, viewFields, viewHeaders, viewRedrives } from './letter-view.ts'

/** Letters of an export that are read at once. The search limits their bytes. */
export const exportBatchMax = 500

/** The content of the last line. */
export type ExportEndView = Readonly<{
  is_complete: boolean
  letters: number
  examined_count: number
  next_cursor: string | null
  error: Readonly<{ code: string; message: string }> | null
}>

/** `after` is the cursor of the request; `list` and `order` belong to all cursors of the export. */
export type ExportSource = Readonly<{
  batches: AsyncGenerator<LetterBatch>
  first: LetterBatch | undefined
  letters: Pick<Letters, 'labels' | 'campaigns'>
  after: LetterCursor | undefined
  list: string
  order: LetterOrder
}>

/**
 * The state of an export. `next`: the cursor after the last exported letter; null at the end of the list.
 */
type Progress = { letters: number; examinedCount: number; next: LetterCursor | null }

/**
 * Reading a batch needs several times the memory of its payloads, so exports read one after the other. A
 * client that receives slowly does not delay others: it holds a batch, but reads none.
 */
const batchReads = new Capacity(1)
const batchWaitMsMax = 60_000

/** Undefined after the last batch. */
export async function readBatch(batches: AsyncGenerator<LetterBatch>): Promise<LetterBatch | undefined> {
  const release = await batchReads.take(1, batchWaitMsMax)
  if (release === undefined) throw createOverloadedError('exports')
  try {
    const read = await batches.next()
    return read.done ? undefined : read.value
  } finally {
    release()
  }
}

/** Yields a line per letter, and a last line that reports whether the export is complete or why it is not. */
export async function* writeExportLines(
  source: ExportSource,
  signal: AbortSignal,
  onDefect: (error: unknown) => void,
): AsyncGenerator<Part> {
  const progress: Progress = { letters: 0, examinedCount: 0, next: source.after ?? null }
  let error: Readonly<{ code: string; message: string }> | null = null
  try {
    yield* writeLetterLines(source, progress, signal)
    if (progress.next !== null) error = { code: 'SHUTTING_DOWN', message: 'the server is shutting down' }
  } catch (cause) {
    const { code, publicMessage } = classifyError(cause, { bodyBytesMax: 0, isClientGone: false })
    if (code === 'INTERNAL') onDefect(cause)
    error = { code, message: publicMessage }
  }
  const { letters, examinedCount, next } = progress
  const end: ExportEndView = {
    is_complete: error === null,
    letters,
    examined_count: Math.max(examinedCount, letters),
    next_cursor: error === null || next === null ? null : writeLetterCursor(next, source.list),
    error,
  }
  yield `${JSON.stringify({ end })}\n`
}

async function* writeLetterLines(
  { batches, first, letters: { labels, campaigns }, list, order }: ExportSource,
  progress: Progress,
  signal: AbortSignal,
): AsyncGenerator<Part> {
  const campaignNames = new Map<string, string>()
  for (let batch = first; batch !== undefined; ) {
    const labelOf = await labels(batch.letters)
    await addCampaignNames(campaignNames, batch.letters, campaigns)
    for (const item of batch.letters) {
      // Each line has its cursor: a client that is disconnected has only the last complete line.
      const position = { value: item[order] ?? 0, id: item.id }
      const payload = await viewLargePayload(item.payload, 'text', neverJson)
      const letter = { ...viewExported(item, labelOf(item), campaignNames), payload }
      yield* takeTurns(writeJsonParts({ ...letter, cursor: writeLetterCursor(position, list) }))
      yield '\n'
      progress.next = position
      progress.letters++
    }
    // A long search without matches sends spaces, which JSON allows, so that the connection is not silent.
    if (batch.letters.length === 0 && batch.next !== null) yield ' '
    progress.examinedCount += batch.examinedCount
    progress.next = batch.next
    if (batch.next === null || signal.aborted) return
    batch = await readBatch(batches)
  }
}

/** Exports show payloads as text. */
const neverJson = async (): Promise<boolean> => false

export type ExportedLetterView = ReturnType<typeof viewExported> &
  Readonly<{ payload: PayloadView; cursor: string }>

function viewExported(
  item: Item,
  { slug, groupId }: LetterLabel,
  campaignNames: ReadonlyMap<string, string>,
) {
  return {
    ...viewFields(item, groupId),
    headers: viewHeaders(item),
    failures: viewFailures(item, slug),
    redrives: viewRedrives(item, campaignNames),
  }
}
