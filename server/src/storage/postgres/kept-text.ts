/** Texts that come from outside and may be none: PostgreSQL keeps neither a NUL character nor half a surrogate pair. */
const mark = '\u0001json:'

export function keptText(text: string): string {
  const isPlain = !text.includes('\0') && text.isWellFormed() && !text.startsWith(mark)
  return isPlain ? text : mark + JSON.stringify(text)
}

export function textOfKept(kept: string): string {
  return kept.startsWith(mark) ? (JSON.parse(kept.slice(mark.length)) as string) : kept
}
