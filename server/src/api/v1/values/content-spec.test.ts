import { describe, expect, it } from 'vitest'
import { readContent, readHeaders, readKey } from './content-spec.ts'

const noJson = () => {
  throw new Error('json is not given')
}

describe('bytes in a request', () => {
  it('a payload is read from text, from base64, or from json as it is written', () => {
    expect(readContent('p', { text: 'ä' }, noJson)).toEqual(Buffer.from('ä'))
    expect(readContent('p', { base64: '/wA' }, noJson)).toEqual(Buffer.from([255, 0]))
    const written = '{"n": 12345678901234567890}'
    expect(readContent('p', { json: JSON.parse(written) }, () => written)).toEqual(Buffer.from(written))
    expect(readContent('p', { json: null }, () => 'null')).toEqual(Buffer.from('null'))
  })

  it('a payload without a form, with two forms or with invalid base64 is refused and named', () => {
    expect(() => readContent('body.payload', {}, noJson)).toThrow('body.payload is empty; give text, json or')
    expect(() => readContent('body.payload', { text: 'a', json: 1 }, noJson)).toThrow(
      'body.payload has text and json; give one of them',
    )
    expect(() => readContent('body.payload', { base64: '*' }, noJson)).toThrow(
      'body.payload.base64 is not base64',
    )
  })

  it('a key or a header with two forms is refused, and a header may have no value', () => {
    expect(readKey('k', { text: '' })).toEqual(Buffer.from(''))
    expect(() => readKey('k', {})).toThrow('k is empty; give text or base64')
    expect(() => readHeaders('h', [{ name: 'a', text: 'a', base64: 'YQ' }])).toThrow(
      'h[0] has text and base64',
    )
    expect(readHeaders('h', [{ name: 'a' }, { name: 'b', base64: 'YQ' }])).toEqual([
      ['a', null],
      ['b', Buffer.from('a')],
    ])
  })
})
