import { describe, expect, it } from 'vitest'
import { cutText, findTextFault, isStorableText, toStorableText } from './storable-text.ts'

describe('storable text', () => {
  it.each([
    ['plain', undefined],
    ['', undefined],
    ['\u0001 \u{1f600} \ufffd', undefined],
    ['a\0b', 'a NUL character'],
    ['a\ud800b', 'an unpaired surrogate'],
    ['\udc00\ud800', 'an unpaired surrogate'],
    ['\ud800\0', 'an unpaired surrogate'],
  ] as const)('the fault of %j is %s', (text, fault) => {
    expect(findTextFault(text)).toBe(fault)
    expect(isStorableText(text)).toBe(fault === undefined)
    expect(isStorableText(toStorableText(text))).toBe(true)
  })

  it('a storable text is not changed', () => {
    expect(toStorableText('é \u{1f600}')).toBe('é \u{1f600}')
  })

  it('a NUL character is replaced by a space or the given character', () => {
    expect(toStorableText('a\0b')).toBe('a b')
    expect(toStorableText('a\0b', '\ufffd')).toBe('a\ufffdb')
  })

  it('a cut text never ends with half of a surrogate pair', () => {
    expect(cutText('ab\u{1f600}', 3)).toBe('ab')
    expect(cutText('ab\u{1f600}', 4)).toBe('ab\u{1f600}')
    expect(cutText('ab\ud800c', 3)).toBe('ab')
  })
})
