import { describe, expect, it } from 'vitest'
import { isSecretHeader, redactContent } from './redaction.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const toText = (value: Uint8Array | null) => (value === null ? null : new TextDecoder().decode(value))

describe('the content that a caller may not read', () => {
  it('payload and key are replaced, and the size of the payload stays', () => {
    const redacted = redactContent({
      payload: bytes('{"card":4711}'),
      payloadBytes: 13,
      key: bytes('customer'),
      headers: [],
    })
    expect(toText(redacted.payload)).toBe('[redacted]')
    expect(redacted.payloadBytes).toBe(13)
    expect(toText(redacted.key)).toBe('[redacted]')
  })

  it('an empty payload, a missing key and content that was not read stay as they are', () => {
    const none = { payload: new Uint8Array(), key: null, headers: [] }
    expect(redactContent(none)).toEqual(none)
    const notRead = { payload: new Uint8Array(), payloadBytes: 70, key: null, headers: [] }
    expect(redactContent(notRead)).toEqual(notRead)
  })

  it('headers keep their names, and lose only the values that are secrets', () => {
    const { headers } = redactContent({
      payload: bytes('x'),
      key: null,
      headers: [
        ['Authorization', bytes('Bearer abc')],
        ['traceparent', bytes('00-a-b-01')],
        ['x-empty', null],
      ],
    })
    expect(headers.map(([name, value]) => [name, toText(value)])).toEqual([
      ['Authorization', '[redacted]'],
      ['traceparent', '00-a-b-01'],
      ['x-empty', null],
    ])
  })

  it.each([
    'authorization',
    'Cookie',
    'Set-Cookie',
    'X-API-Key',
    'x-auth-token',
    'client_secret',
    'X-Hub-Signature',
  ])('%s is a secret header', (name) => expect(isSecretHeader(name)).toBe(true))

  it.each(['content-type', 'traceparent', 'x-request-id', 'original-topic'])(
    '%s is no secret header',
    (name) => expect(isSecretHeader(name)).toBe(false),
  )
})
