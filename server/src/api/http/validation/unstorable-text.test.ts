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
      mended: Type.Unknown(repairedWhenRead),
    }),
  ),
})
const find = (item: object) => findUnstorableText({ items: [{}, item] }, Body)

describe('a text that no store keeps', () => {
  it('is found wherever it stands', () => {
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

  it('may hold a NUL where it is kept as bytes, but never half a character', () => {
    expect(find({ text: 'a\0b', pairs: [['\0', '']], kind: '👍', more: [1, null, true] })).toBeUndefined()
    expect(find({ text: 'a\ud83d' })).toMatchObject({ pointer: '/items/1/text' })
  })

  it('may be anything where it is mended', () => {
    expect(find({ mended: { 'a\ud83d': ['\ud83d', '\0'] } })).toBeUndefined()
    expect(find({ mended: '\ud83d', more: '\ud83d' })).toMatchObject({ pointer: '/items/1/more' })
  })

  it('is looked for however deep the request is nested', () => {
    const deep = JSON.parse(`${'['.repeat(200_000)}"\\u0000"${']'.repeat(200_000)}`)
    expect(findUnstorableText(deep, Type.Unknown())).toMatchObject({ message: 'contains a NUL character' })
  })
})
