/**
 * Whether every store can keep the text: PostgreSQL cannot store NUL characters, and an unpaired surrogate
 * has no UTF-8. No stored text equals a text that is not storable.
 */
export function isStorableText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

/** The nearest text that every store can keep. */
export function toStorableText(text: string): string {
  return text.replaceAll('\0', ' ').toWellFormed()
}
