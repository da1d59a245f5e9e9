/** Whole letters, batch by batch: as many at once as the store gives, which bounds them by their bytes. */
import type { Item } from '../../../core/item.ts'
import type { LetterSearch, Letters } from '../../../letters/letters.ts'
import type { LetterCursor } from '../../../storage/contract/letters.ts'

export type LetterBatch = Readonly<{
  letters: readonly Item[]
  looked: number
  next: LetterCursor | null
}>

const batchMax = 500

/** Until there is nothing more. */
export async function* readLetters(
  letters: Pick<Letters, 'list'>,
  search: Pick<LetterSearch, 'filter' | 'order' | 'isDescending' | 'after'>,
): AsyncGenerator<LetterBatch> {
  for (let { after } = search; ; ) {
    const from = after === undefined ? search : { ...search, after }
    const page = await letters.list({ ...from, countMax: batchMax, bytes: 'all' })
    yield page
    if (page.next === null) return
    after = page.next
  }
}
