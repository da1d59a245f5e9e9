/**
 * The reason of a failure as one word: what stands before the first colon of the message, else its first
 * word. `HTTP 503: upstream` is `http_503`, `network timeout` is `network`.
 *
 * Long numbers and ids are left out (`order 83412: gone` is `order`): a reason that is another one for every
 * letter is none.
 */
export function reasonSlug(message: string | null): string {
  return slugOf(headOf(message ?? ''))
}

export function headOf(message: string): string {
  const text = message.slice(0, messageRead).trim()
  const colon = text.indexOf(':')
  return colon >= 0 ? text.slice(0, colon) : (text.split(/\s/, 1)[0] ?? '')
}

export function slugOf(head: string): string {
  const slug = head
    .toLowerCase()
    .replaceAll(idOrNumber, ' ')
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_|_$/g, '')
    .slice(0, slugMax)
  return slug === '' ? 'unknown' : slug
}

/** A UUID, a long run of letters and digits, a long number. */
const idOrNumber = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?=[a-z]*[0-9])[0-9a-z]{12,}\b|[0-9]{4,}/g
const messageRead = 512
const slugMax = 64
