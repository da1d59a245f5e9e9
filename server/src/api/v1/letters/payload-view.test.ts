import { describe, expect, it } from 'vitest'
import { previewPayload, viewPayload } from './payload-view.ts'

const bytes = (text: string) => new Uint8Array(Buffer.from(text))
const odd = new Uint8Array([0xff, 0x00, 0x7b])

describe('a payload', () => {
  it('a payload is shown in the requested form', () => {
    const json = bytes('{"a": 1}')
    expect(viewPayload(json, 'text')).toEqual({ bytes: 8, form: 'text', value: '{"a": 1}', problem: null })
    expect(viewPayload(json, 'json')).toMatchObject({ form: 'json', value: { a: 1 } })
    expect(viewPayload(json, 'hex')).toMatchObject({ form: 'hex', value: '7b2261223a20317d' })
    expect(viewPayload(json, 'base64')).toMatchObject({ form: 'base64', value: 'eyJhIjogMX0=' })
    expect(viewPayload(json, 'none')).toMatchObject({ form: 'none', value: null, bytes: 8 })
  })

  it('the form auto is JSON, else text, else hex', () => {
    expect(viewPayload(bytes('null'), 'auto')).toMatchObject({ form: 'json', value: null })
    expect(viewPayload(bytes('{"a"'), 'auto')).toMatchObject({ form: 'text', value: '{"a"' })
    expect(viewPayload(odd, 'auto')).toMatchObject({ form: 'hex', value: 'ff007b', problem: null })
  })

  it('a payload that does not have the requested form is shown as hex with the reason', () => {
    expect(viewPayload(odd, 'text')).toMatchObject({ form: 'hex', problem: 'the payload is not UTF-8' })
    expect(viewPayload(bytes('{'), 'json')).toMatchObject({
      form: 'hex',
      problem: 'the payload is not JSON, or nested too deep',
    })
  })

  it('a JSON payload that is nested too deep is shown as text', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    expect(viewPayload(bytes(deep), 'auto')).toMatchObject({ form: 'text', value: deep })
    expect(viewPayload(bytes(deep), 'json')).toMatchObject({ form: 'hex' })
    const fine = `${'['.repeat(500)}${']'.repeat(500)}`
    expect(JSON.stringify(viewPayload(bytes(fine), 'json').value)).toBe(fine)
  })
})

describe('the preview of a payload', () => {
  it('the preview of text is its start, cut between characters', () => {
    for (const text of ['a', 'ä', '€', '😀']) {
      for (const before of ['', 'x', 'xx', 'xxx']) {
        const whole = before + text.repeat(300)
        const { preview, is_text, is_cut, bytes: length } = previewPayload(bytes(whole))
        expect({ is_text, is_cut, length }).toEqual({
          is_text: true,
          is_cut: true,
          length: Buffer.byteLength(whole),
        })
        expect(whole.startsWith(preview)).toBe(true)
        expect(preview.length).toBeGreaterThan(60)
      }
    }
    expect(previewPayload(bytes('short'))).toEqual({
      bytes: 5,
      preview: 'short',
      is_text: true,
      is_cut: false,
    })
    expect(previewPayload(new Uint8Array())).toEqual({ bytes: 0, preview: '', is_text: true, is_cut: false })
  })

  it('the preview of other bytes is hex', () => {
    expect(previewPayload(odd)).toEqual({ bytes: 3, preview: 'ff007b', is_text: false, is_cut: false })
    expect(previewPayload(new Uint8Array(1_000).fill(0xff))).toMatchObject({ is_text: false, is_cut: true })
  })
})
