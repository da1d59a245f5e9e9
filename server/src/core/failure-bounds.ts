/**
 * The longest code and class of a failure. Letters are grouped, counted and filtered by both, so every place
 * that creates a failure cuts them to the same length: a filter with the shown value finds the letter.
 */
export const failureReasonMax = 100
export const errorClassMax = 500

/** Cuts a text without splitting a surrogate pair: the result may be one character shorter. */
export function cutText(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  const cut = text.slice(0, lengthMax)
  return cut.isWellFormed() ? cut : cut.slice(0, -1).toWellFormed()
}
