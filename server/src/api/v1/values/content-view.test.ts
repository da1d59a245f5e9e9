import { describe, expect, it } from 'vitest'
import { previewPayload, viewHeader, viewKey, viewPayload } from './content-view.ts'

const bytes = (text: string) => new Uint8Array(Buffer.from(text))
const odd = new Uint8Array([0xff, 0x00, 0x7b])
const whole = { is_truncated: false }

describe('a payload', () => {
  it('a payload is shown in the requested form', () => {
    const json = bytes('{"a": 1}')
    expect(viewPayload(json, 'text')).toEqual({ ...whole, bytes: 8, text: '{"a": 1}' })
    expect(viewPayload(json, 'json')).toEqual({ ...whole, bytes: 8, json: { a: 1 } })
    expect(viewPayload(json, 'base64')).toEqual({ ...whole, bytes: 8, base64: 'eyJhIjogMX0=' })
    expect(viewPayload(json, 'none')).toEqual({ bytes: 8, is_truncated: true })
    expect(viewPayload(bytes('null'), 'json')).toEqual({ ...whole, bytes: 4, json: null })
  })

  it('a payload that is not UTF-8 is shown in base64', () => {
    expect(viewPayload(odd, 'text')).toEqual({ ...whole, bytes: 3, base64: '/wB7' })
    expect(viewPayload(odd, 'json')).toEqual({ ...whole, bytes: 3, base64: '/wB7' })
  })

  it('a payload with too many values to be parsed is shown as text', () => {
    const wide = `[${'[],'.repeat(1_200_000)}[]]`
    expect(viewPayload(bytes(wide), 'json')).toMatchObject({ text: wide })
  })

  it('a payload that is not JSON, or is nested too deep, is shown as text', () => {
    expect(viewPayload(bytes('{'), 'json')).toEqual({ ...whole, bytes: 1, text: '{' })
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    expect(viewPayload(bytes(deep), 'json')).toMatchObject({ text: deep })
    const fine = `${'['.repeat(500)}${']'.repeat(500)}`
    expect(JSON.stringify(viewPayload(bytes(fine), 'json').json)).toBe(fine)
  })
})

describe('the preview of a payload', () => {
  it('the preview of text is its start, cut between characters', () => {
    for (const text of ['a', 'ä', '€', '😀']) {
      for (const before of ['', 'x', 'xx', 'xxx']) {
        const complete = before + text.repeat(300)
        const { text: shown = '', is_truncated, bytes: length } = previewPayload(bytes(complete))
        expect({ is_truncated, length }).toEqual({ is_truncated: true, length: Buffer.byteLength(complete) })
        expect(complete.startsWith(shown)).toBe(true)
        expect(shown.length).toBeGreaterThan(60)
      }
    }
    expect(previewPayload(bytes('short'))).toEqual({ ...whole, bytes: 5, text: 'short' })
    expect(previewPayload(new Uint8Array())).toEqual({ ...whole, bytes: 0, text: '' })
  })

  it('the preview of other bytes is base64', () => {
    expect(previewPayload(odd)).toEqual({ ...whole, bytes: 3, base64: '/wB7' })
    const long = previewPayload(new Uint8Array(1_000).fill(0xff))
    expect(long).toMatchObject({ bytes: 1_000, is_truncated: true })
    expect(Buffer.from(long.base64 ?? '', 'base64')).toEqual(Buffer.alloc(64, 0xff))
  })
})

describe('a key and a header', () => {
  it('a key is text or base64, or null if there is none', () => {
    expect(viewKey(bytes('k'))).toEqual({ text: 'k' })
    expect(viewKey(odd)).toEqual({ base64: '/wB7' })
    expect(viewKey(null)).toBeNull()
  })

  it('a header without a value has only a name', () => {
    expect(viewHeader(['h', bytes('')])).toEqual({ name: 'h', text: '' })
    expect(viewHeader(['h', odd])).toEqual({ name: 'h', base64: '/wB7' })
    expect(viewHeader(['h', null])).toEqual({ name: 'h' })
  })
})
