import { maskMessage } from '../grouping/mask-message.ts'
import { toSlug } from '../grouping/slug.ts'

/**
 * The reason of a failure as one word, from its message: `HTTP 503: upstream` becomes `http_503`, `network
 * timeout` becomes `network`. It is the slug of the group that a new letter with this message gets.
 */
export function toReasonSlug(message: string | null): string {
  return toSlug(maskMessage((message ?? '').slice(0, messageRead)))
}

const messageRead = 2_000
