/**
 * The texts that every store can keep. PostgreSQL cannot store a NUL character, and an unpaired surrogate has
 * no UTF-8 encoding. No stored text equals a text that is not storable, so a search for one finds nothing.
 */

/** Why a text is not storable, as a phrase for messages: "the reason contains a NUL character". */
export type TextFault = 'a NUL character' | 'an unpaired surrogate'

/** Undefined: every store can keep the text. */
export function findTextFault(text: string): TextFault | undefined {
  if (!text.isWellFormed()) return 'an unpaired surrogate'
  return text.includes('\0') ? 'a NUL character' : undefined
}

export function isStorableText(text: string): boolean {
  return findTextFault(text) === undefined
}

/**
 * The nearest storable text: with another character for each NUL, and with U+FFFD for unpaired surrogates.
 */
export function toStorableText(text: string, nulReplacement = ' '): string {
  return text.replaceAll('\0', nulReplacement).toWellFormed()
}

/** Cuts a text without splitting a surrogate pair: the result may be one character shorter. */
export function cutText(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  const cut = text.slice(0, lengthMax)
  return cut.isWellFormed() ? cut : cut.slice(0, -1).toWellFormed()
}
