import { describe, expect, it } from 'vitest'
import { writePayloadText } from './message-text.ts'

const write = (text: string): string => writePayloadText(Buffer.from(text))

describe('the payload of a message', () => {
  it('a JSON payload is written unchanged, so that no number changes', () => {
    expect(write('{"id":12345678901234567890,"id":1e400}')).toBe('{"id":12345678901234567890,"id":1e400}')
    expect(write(' [1, 2]\n')).toBe(' [1, 2]\n')
    expect(write('"text"')).toBe('"text"')
  })

  it('a JSON payload may be nested deeper than the call stack', () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000)
    expect(write(deep)).toBe(deep)
  })

  it('an empty payload is written as null', () => {
    expect(write('')).toBe('null')
  })

  it('a payload that is text but not JSON is written as raw_payload', () => {
    expect(JSON.parse(write('{"cut":'))).toEqual({ raw_payload: '{"cut":' })
    expect(JSON.parse(write('one\u0000two'))).toEqual({ raw_payload: 'one\u0000two' })
  })

  it('a payload that is not UTF-8 is written completely as base64', () => {
    expect(JSON.parse(writePayloadText(new Uint8Array([0xff, 0x00, 0xfe])))).toEqual({
      raw_payload: '3 bytes that are not UTF-8',
      raw_payload_base64: '/wD+',
    })
  })
})
