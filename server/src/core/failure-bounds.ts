/**
 * How long the code and the class of a failure are. Letters are grouped, counted and filtered by them: what one is shown as is
 * what it is found by, so whoever makes a failure cuts them to the same length.
 */
export const failureReasonMax = 100
export const errorClassMax = 500

/** Its beginning; of a pair of characters not half. */
export function cutText(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  const cut = text.slice(0, lengthMax)
  return cut.isWellFormed() ? cut : cut.slice(0, -1).toWellFormed()
}
