import { describe, expect, it } from 'vitest'
import { KnownError } from '../../../errors.ts'
import { decodeError, encodeError } from '../threads/thread-messages.ts'
import { toKnownError } from './errors.ts'

const path = '/srv/redrive/redrive.db'

function failed(errcode: number): Error {
  return Object.assign(new Error('a message of SQLite'), { code: 'ERR_SQLITE_ERROR', errcode })
}

const folder = Object.assign(new Error(`EACCES: permission denied, mkdir '/srv/redrive'`), { code: 'EACCES' })

describe('errors of SQLite', () => {
  it.each([
    ['STORE_FULL', failed(13)],
    ['STORE_FULL', failed(778)],
    ['STORE_UNAVAILABLE', failed(266)],
    ['STORE_UNAVAILABLE', failed(11)],
    ['STORE_LOCKED', failed(5)],
    ['STORE_UNWRITABLE', failed(8)],
    ['STORE_UNWRITABLE', folder],
    ['STORE_NOT_OURS', failed(26)],
  ])(
    'an error becomes %s, with the path for the log and without it for callers, also from a thread',
    (code, error) => {
      const known = decodeError(encodeError(toKnownError(error, path)))
      if (!(known instanceof KnownError)) throw known
      expect(known).toMatchObject({ code, message: expect.stringContaining(path) })
      expect(known.publicMessage).toContain('the store')
      expect(known.publicMessage).not.toContain('/srv')
    },
  )
})
