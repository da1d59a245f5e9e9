/** Letters as lines of JSON, however many: read only as fast as they are taken, and no longer than somebody does. */
import { Readable } from 'node:stream'
import { Type } from 'typebox'
import type { Item } from '../../../core/item.ts'
import type { Letters } from '../../../letters/letters.ts'
import type { LetterCursor, LetterOrder } from '../../../storage/letter-store.ts'
import { clientGone } from '../../client-gone.ts'
import { foresee } from '../../foresee.ts'
import { route } from '../../route.ts'
import { v1 } from '../dialect.ts'
import { filterFields, readFilter } from '../letter-filter.ts'
import { base64Of, textOf } from '../wire-bytes.ts'
import { viewFailures, viewFields, viewHeaders, viewRedrive } from './letter-view.ts'
import { learnCampaigns, letterOrders, orderFields, readLetterCursor, writeLetterCursor } from './letters.ts'
import { type LetterBatch, readLetters } from './read-letters.ts'

export const exportRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/letters/export',
    permission: 'letter.read',
    summary:
      'All dead letters that match, whole, as one JSON object per line; the last line says whether they are all.',
    tag: 'letters',
    dialect: v1,
    slowMs: Number.POSITIVE_INFINITY,
    schema: {
      querystring: Type.Object(
        {
          ...filterFields,
          ...orderFields,
          cursor: Type.Optional(
            Type.String({
              maxLength: 1_000,
              description:
                '`next_cursor` of the last line, or `cursor` of the last letter of an export that was cut.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      response: {
        200: {
          description:
            'A letter per line, each with a `cursor`. The last line is {"end": {"is_complete", "letters", "looked", "next_cursor", "error"}}; without it the answer was cut, and the `cursor` of the last whole line goes on after it.',
          content: { 'application/x-ndjson': { schema: Type.String() } },
        },
      },
    },
    handler: async ({ query, id: requestId }, reply, context) => {
      const { cursor, order_by, order, ...fields } = query
      const filter = await readFilter(fields, 'query', context.storage)
      const list = `letters:${order_by}:${order}`
      const after = cursor === undefined ? undefined : readLetterCursor(cursor, list)
      const signal = AbortSignal.any([clientGone(reply).signal, context.stopping])
      const letters = context.letters()
      const batches = readLetters(letters, {
        filter,
        order: letterOrders[order_by],
        isDescending: order === 'desc',
        ...(after !== undefined && { after }),
      })
      // Before the answer begins: what fails at once is still an error with its status.
      const first = await batches.next()
      const source = { first: first.done ? undefined : first.value, rest: batches, letters }
      const place = { list, by: letterOrders[order_by] }
      const lines = exportLines(source, after, place, signal, (error) =>
        context.log.error({ request_id: requestId, err: error }, 'an export failed after it had begun'),
      )
      return reply
        .header('content-type', 'application/x-ndjson; charset=utf-8')
        .header('content-disposition', 'attachment; filename="letters.ndjson"')
        .send(Readable.from(lines, { objectMode: false, highWaterMark: 64 * 1_024 }))
    },
  }),
]

type Source = Readonly<{
  first: LetterBatch | undefined
  rest: AsyncGenerator<LetterBatch>
  letters: Pick<Letters, 'slugs' | 'campaigns'>
}>

async function* exportLines(
  { first, rest, letters: { slugs, campaigns } }: Source,
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
        const cursor = writeLetterCursor({ value: item[by] ?? 0, id: item.id }, list)
        yield `${JSON.stringify({ ...viewExported(item, slugOf(item), names), cursor })}\n`
      }
      letters += batch.letters.length
      looked += batch.looked
      next = batch.next
      if (next === null || signal.aborted) break
      const more = await rest.next()
      batch = more.done ? undefined : more.value
    }
    if (next !== null) error = { code: 'SHUTTING_DOWN', message: 'the server is shutting down' }
  } catch (cause) {
    const { code, told } = foresee(cause, { bodyBytesMax: 0, isClientGone: false })
    if (code === 'INTERNAL') onDefect(cause)
    error = { code, message: told }
  }
  const end = {
    is_complete: error === null,
    letters,
    looked,
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
