import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { findUnstorableText, repairedWhenRead, storedAsBytes } from './unstorable-text.ts'

const Body = Type.Object({
  items: Type.Array(
    Type.Object({
      kind: Type.String(),
      text: Type.String(storedAsBytes),
      pairs: Type.Array(Type.Tuple([Type.String(storedAsBytes), Type.String()])),
      more: Type.Unknown(),
      repaired: Type.Unknown(repairedWhenRead),
    }),
  ),
})
const find = (item: object) => findUnstorableText({ items: [{}, item] }, Body)

describe('unstorable text', () => {
  it('a NUL character or an unpaired surrogate is found in any field, element or name', () => {
    const nul = 'contains a NUL character'
    expect(find({ kind: 'a\0' })).toEqual({ pointer: '/items/1/kind', message: nul })
    expect(
      find({
        pairs: [
          ['', ''],
          ['', '\0'],
        ],
      }),
    ).toEqual({ pointer: '/items/1/pairs/1/1', message: nul })
    expect(find({ more: { 'a/b': ['\0'] } })).toEqual({ pointer: '/items/1/more/a~1b/0', message: nul })
    expect(find({ more: { 'a\0': 1 } })).toEqual({ pointer: '/items/1/more', message: nul })
    expect(findUnstorableText('\udc00', Type.String())).toEqual({
      pointer: '',
      message: 'contains an unpaired surrogate',
    })
  })

  it('a text that is stored as bytes may contain a NUL character, but no unpaired surrogate', () => {
    expect(find({ text: 'a\0b', pairs: [['\0', '']], kind: '👍', more: [1, null, true] })).toBeUndefined()
    expect(find({ text: 'a\ud83d' })).toMatchObject({ pointer: '/items/1/text' })
  })

  it('a text that its reader repairs may contain anything', () => {
    expect(find({ repaired: { 'a\ud83d': ['\ud83d', '\0'] } })).toBeUndefined()
    expect(find({ repaired: '\ud83d', more: '\ud83d' })).toMatchObject({ pointer: '/items/1/more' })
  })

  it('an unstorable text is found at any depth of nesting', () => {
    const deep = JSON.parse(`${'['.repeat(200_000)}"\\u0000"${']'.repeat(200_000)}`)
    expect(findUnstorableText(deep, Type.Unknown())).toMatchObject({ message: 'contains a NUL character' })
  })
})
