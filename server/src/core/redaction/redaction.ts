/**
 * The view of an item for a caller that may not read its content: everything that operators need to judge a
 * failure, without the message. Payloads and keys are replaced as a whole, and the values of headers that
 * carry secrets.
 */
import type { Header } from '../items/item.ts'

export const redactedText = '[redacted]'
export const redactedBytes = new TextEncoder().encode(redactedText)

const secretHeader =
  /^(authorization|proxy-authorization|cookie|set-cookie|x-csrf-token)$|api-?key|token|secret|password|passwd|credential|signature|session/i

/** Whether the value of a header with this name is a secret, or a proof of one. */
export function isSecretHeader(name: string): boolean {
  return secretHeader.test(name)
}

/** Scheme and host, and whether there is more: path and query of a webhook receiver may be a secret. */
export function redactUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return redactedText
  const hasMore = url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== ''
  return hasMore ? `${url.origin}/${redactedText}` : text
}

type Content = Readonly<{
  payload: Uint8Array
  payloadBytes?: number
  key: Uint8Array | null
  headers: readonly Header[]
}>

/** Content that was not read stays empty. The size of the payload stays visible. */
export function redactContent<C extends Content>(content: C): C {
  const { payload, key, headers } = content
  const size = content.payloadBytes ?? payload.byteLength
  return {
    ...content,
    payload: payload.byteLength === 0 ? payload : redactedBytes,
    ...(size > 0 && { payloadBytes: size }),
    key: key === null || key.byteLength === 0 ? key : redactedBytes,
    headers: headers.map(
      ([name, value]): Header => [name, value === null || !isSecretHeader(name) ? value : redactedBytes],
    ),
  }
}
