/** The lines of an export. */
import type { Item } from '../../../core/item.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { LetterCursor, LetterOrder } from '../../../storage/contract/letters.ts'
import { classifyError } from '../../http/classify-error.ts'
import { base64Of, textOf } from '../values/wire-bytes.ts'
import { viewFailures, viewFields, viewHeaders, viewRedrive } from './letter-view.ts'
import { learnCampaigns, writeLetterCursor } from './letters.ts'
import type { LetterBatch } from './read-letters.ts'

export type ExportSource = Readonly<{
  first: LetterBatch | undefined
  rest: AsyncGenerator<LetterBatch>
  letters: Pick<Letters, 'slugs' | 'campaigns'>
}>

/** The letters, each with where it stands, and at last how it ended: in order, or with what went wrong. */
export async function* exportLines(
  { first, rest, letters: { slugs, campaigns } }: ExportSource,
  after: LetterCursor | undefined,
  { list, by }: Readonly<{ list: string; by: LetterOrder }>,
  signal: AbortSignal,
  onDefect: (error: unknown) => void,
): AsyncGenerator<string> {
  const names = new Map<string, string>()
  let letters = 0
  let looked = 0
  let next: LetterCursor | null = after ?? null
  let error: Readonly<{ code: string; message: string }> | null = null
  try {
    for (let batch = first; batch !== undefined; ) {
      const slugOf = await slugs(batch.letters)
      await learnCampaigns(batch.letters, campaigns, names)
      for (const item of batch.letters) {
        // In each line: whoever is cut off has the last one, and nothing else.
        const place = { value: item[by] ?? 0, id: item.id }
        const cursor = writeLetterCursor(place, list)
        yield `${JSON.stringify({ ...viewExported(item, slugOf(item), names), cursor })}\n`
        next = place
        letters++
      }
      // Where little matches it is searched for long: JSON may begin with spaces, and silence would be taken for a cut.
      if (batch.letters.length === 0 && batch.next !== null) yield ' '
      looked += batch.looked
      next = batch.next
      if (next === null || signal.aborted) break
      const more = await rest.next()
      batch = more.done ? undefined : more.value
    }
    if (next !== null) error = { code: 'SHUTTING_DOWN', message: 'the server is shutting down' }
  } catch (cause) {
    const { code, publicMessage } = classifyError(cause, { bodyBytesMax: 0, isClientGone: false })
    if (code === 'INTERNAL') onDefect(cause)
    error = { code, message: publicMessage }
  }
  const end = {
    is_complete: error === null,
    letters,
    looked: Math.max(looked, letters),
    next_cursor: error === null || next === null ? null : writeLetterCursor(next, list),
    error,
  }
  yield `${JSON.stringify({ end })}\n`
}

function viewExported(item: Item, slug: string, names: ReadonlyMap<string, string>): object {
  const payload = textOf(item.payload)
  return {
    ...viewFields(item),
    payload,
    // Text is exact where it is text; twice the size would help nobody.
    payload_base64: payload === null ? base64Of(item.payload) : null,
    headers: viewHeaders(item),
    failures: viewFailures(item, slug),
    redrives: (item.letter?.redrives ?? []).map((record) => viewRedrive(record, (id) => names.get(id) ?? '')),
  }
}
