/**
 * The reason of a failure as one word: what stands before the first colon of the message, else its first
 * word. `HTTP 503: upstream` is `http_503`, `network timeout` is `network`.
 *
 * Long numbers are left out (`order 83412: gone` is `order`): a reason that is another one for every
 * letter is none.
 */
export function reasonSlug(message: string | null): string {
  const text = (message ?? '').slice(0, messageRead).trim()
  const colon = text.indexOf(':')
  const head = colon >= 0 ? text.slice(0, colon) : (text.split(/\s/, 1)[0] ?? '')
  const slug = head
    .toLowerCase()
    .replaceAll(/[0-9]{4,}/g, ' ')
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_|_$/g, '')
    .slice(0, slugMax)
  return slug === '' ? 'unknown' : slug
}

const messageRead = 512
const slugMax = 64
