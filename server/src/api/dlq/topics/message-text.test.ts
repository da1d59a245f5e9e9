import { describe, expect, it } from 'vitest'
import { writePayloadText } from './message-text.ts'

const of = (text: string): string => writePayloadText(Buffer.from(text))

describe('the payload of a message', () => {
  it('is the JSON text itself, so that no number becomes another one', () => {
    expect(of('{"id":12345678901234567890,"id":1e400}')).toBe('{"id":12345678901234567890,"id":1e400}')
    expect(of(' [1, 2]\n')).toBe(' [1, 2]\n')
    expect(of('"text"')).toBe('"text"')
  })

  it('may be nested deeper than a call stack', () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000)
    expect(of(deep)).toBe(deep)
  })

  it('is null when it is empty', () => {
    expect(of('')).toBe('null')
  })

  it('is wrapped when it is other text', () => {
    expect(JSON.parse(of('{"cut":'))).toEqual({ raw_payload: '{"cut":' })
    expect(JSON.parse(of('one\u0000two'))).toEqual({ raw_payload: 'one\u0000two' })
  })

  it('is shown whole when it is no text at all', () => {
    expect(JSON.parse(writePayloadText(new Uint8Array([0xff, 0x00, 0xfe])))).toEqual({
      raw_payload: '3 bytes that are not UTF-8',
      raw_payload_base64: '/wD+',
    })
  })
})
