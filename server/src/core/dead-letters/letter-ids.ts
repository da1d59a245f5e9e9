/**
 * The ids that a letter is known by besides its letter id and its source id: the id that produce answered,
 * the ids of the attempts before it died, and the ids of its redrives. The stores record them in the
 * transaction that creates them, so that a person finds the letter by any of them.
 */
import type { ItemId, LetterId } from '../ids/ids.ts'
import { type ItemHead, isLetter } from '../items/item.ts'

export type LetterIdRecord = Readonly<{ letterId: LetterId; id: ItemId }>

const none: readonly LetterIdRecord[] = []

/** The new id of a letter, or of the redrive of a letter, that went to the tail of its partition. */
export function recordNewId(before: ItemHead, after: ItemHead): readonly LetterIdRecord[] {
  if (before.id === after.id) return none
  if (before.letterId !== null) return [{ letterId: before.letterId, id: after.id }]
  return isLetter(before) ? [{ letterId: before.rootId, id: after.id }] : none
}

/** The ids that an item had before it died. Its last id is the source id of the letter. */
export function recordEarlierIds(item: ItemHead, letter: ItemHead): readonly LetterIdRecord[] {
  const ids = new Set<string>([item.rootId])
  for (const { itemId } of letter.history) if (itemId !== undefined) ids.add(itemId)
  ids.delete(item.id)
  // The reference of a webhook job is its id on the wire.
  if (letter.origin?.kind === 'webhook' && item.reference !== '') ids.add(item.reference)
  return [...ids].map((id) => ({ letterId: letter.rootId, id }))
}
