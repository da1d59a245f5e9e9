/** The part of a message that says what failed: without markup, details of the data, and repetitions. */
const linesMax = 300

/** Lines that describe the data or point to documentation. */
const noiseLine =
  /^\s*(?:at \[Source|\[SQL|\[parameters|DETAIL:|Detail:|HINT:|Hint:|CONTEXT:|For further information|\(Background on|Stack trace:|Traceback \()/

const html = /^\s*<(?:!doctype html|html|head|body)/i
const xml = /^\s*<(?:\?xml|[\w-]{1,20}:(?:envelope|fault|error)|fault|errors?|exception)\b/i

export function toPlainText(message: string): string {
  if (html.test(message) || xml.test(message)) {
    const text = message
      .replaceAll(/<!--[^>]{0,400}-->/g, '\n')
      .replaceAll(/<(?:script|style)[^<>]{0,200}>[^<]{0,2000}/gi, '\n')
      // The signature of the server.
      .replace(/<hr[^<>]{0,40}>.*$/is, '')
      .replaceAll(/<[^<>]{0,400}>/g, '\n')
    return joinLines(text.split('\n', linesMax))
  }
  return message.includes('\n') ? joinLines(message.split('\n', linesMax)) : message
}

/**
 * Lines that differ only in numbers from an earlier line repeat it, such as the problems of many elements.
 */
function joinLines(lines: readonly string[]): string {
  const seen = new Set<string>()
  const kept: string[] = []
  for (const line of lines) {
    const text = line.trim()
    const key = text.replaceAll(/[0-9]+/g, '0').replace(/,$/, '')
    if (text === '' || noiseLine.test(text) || seen.has(key)) continue
    seen.add(key)
    kept.push(text)
  }
  return kept.join('\n')
}
