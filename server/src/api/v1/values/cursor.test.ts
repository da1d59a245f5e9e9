import { describe, expect, it } from 'vitest'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { readCursor, writeCursor } from './cursor.ts'

describe('a cursor', () => {
  it('gives back what was written into it', () => {
    expect(readCursor(writeCursor('letters', [7, 'id']), 'letters', ['number', 'string'])).toEqual([7, 'id'])
  })

  it.each([
    ['nothing', ''],
    ['what is no cursor', 'abc'],
    ['one of another list', writeCursor('groups', [7, 'id'])],
    ['too few parts', writeCursor('letters', [7])],
    ['parts of another type', writeCursor('letters', ['7', 'id'])],
    ['a number that is none', writeCursor('letters', [1.5, 'id'])],
    ['a text no store could look for', writeCursor('letters', [7, 'a\0'])],
    ['an object', Buffer.from('{"a":1}').toString('base64url')],
  ])('refuses %s', (_name, cursor) => {
    expect(() => readCursor(cursor, 'letters', ['number', 'string'])).toThrow(InvalidRequest)
  })
})
