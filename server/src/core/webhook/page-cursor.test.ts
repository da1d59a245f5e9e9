import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { noon } from '../../../test/make.ts'
import { formatPageCursor, parsePageCursor } from './page-cursor.ts'

const id = '9m4e2mr0ui3e8a215n4g'

describe('page cursors', () => {
  it('a cursor is base64 of the id and the creation time', () => {
    expect(atob(formatPageCursor({ id, createdAt: noon + 7 }))).toBe(`${id}|2026-11-15T12:00:00.000007Z`)
  })

  it('every cursor is parsed as the position that it was created from', () => {
    const instants = fc.integer({ min: 0, max: Date.UTC(2200, 0) * 1_000 })
    fc.assert(
      fc.property(instants, (createdAt) => {
        const text = formatPageCursor({ id, createdAt })
        expect(parsePageCursor(text)).toEqual({ id, createdAt })
        expect(parsePageCursor(text.replaceAll('+', ' ').replaceAll('=', ''))).toEqual({ id, createdAt })
      }),
    )
  })

  it('a cursor of another program is read with its offset and its precision', () => {
    expect(parsePageCursor(btoa(`${id}|2026-11-15T14:00:00.000007999+02:00`))).toEqual({
      id,
      createdAt: noon + 7,
    })
  })

  it.each(['', '%%%', btoa('no separator'), btoa('short|2026-11-15T12:00:00Z'), btoa(`${id}|yesterday`)])(
    'the unreadable cursor %j is no position',
    (text) => {
      expect(parsePageCursor(text)).toBeUndefined()
    },
  )

  it('no text makes the parser throw', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        parsePageCursor(text)
      }),
    )
  })
})
