import type { Item } from '../../core/item.ts'

/** A letter that was given up remembers by which campaign in its reason: it has no other place for that. */
export function reasonOfDiscard(reason: string, campaignId: string): string {
  return `${reason} (campaign ${campaignId})`
}

/** The campaigns whose set a letter was in, as far as it remembers. */
export function campaignsOf({ letter }: Pick<Item, 'letter'>): readonly string[] {
  if (letter === null) return []
  const byRedrive = letter.redrives.flatMap(({ campaign }) => campaign?.id ?? [])
  const byDiscard = /\(campaign ([0-9A-Za-z]{27})\)$/.exec(letter.discardReason)?.[1]
  return [...new Set(byDiscard === undefined ? byRedrive : [...byRedrive, byDiscard])]
}
