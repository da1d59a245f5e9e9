import { describe, expect, it } from 'vitest'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { readCursor, writeCursor } from './cursor.ts'

describe('a cursor', () => {
  it('a cursor returns the parts that were written into it', () => {
    expect(readCursor(writeCursor('letters', [7, 'id']), 'letters', ['number', 'string'])).toEqual([7, 'id'])
  })

  it.each([
    ['an empty text', ''],
    ['a text that is no cursor', 'abc'],
    ['a cursor of another list', writeCursor('groups', [7, 'id'])],
    ['a cursor with too few parts', writeCursor('letters', [7])],
    ['a cursor with parts of another type', writeCursor('letters', ['7', 'id'])],
    ['a cursor with a fractional number', writeCursor('letters', [1.5, 'id'])],
    ['a cursor with a NUL character', writeCursor('letters', [7, 'a\0'])],
    ['an encoded object', Buffer.from('{"a":1}').toString('base64url')],
  ])('%s is refused', (_name, cursor) => {
    expect(() => readCursor(cursor, 'letters', ['number', 'string'])).toThrow(InvalidRequest)
  })
})
