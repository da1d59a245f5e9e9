import { describe, expect, it } from 'vitest'
import fc from '../../test/fast-check.ts'
import { normalize } from './normalize.ts'

describe('a message without its variable parts', () => {
  it.each([
    ['took 1.5 s, not 30', 'took <n> s, not <n>'],
    ["no such column 'name'", 'no such column <text>'],
    ['at 0xDEADbeef', 'at <n>'],
    ['token a1b2c3d4e5f6a7b8 refused', 'token <n> refused'],
    ['order a1b2 of 3fa8', 'order <n> of <n>'],
    ['E11000 within 30s, 1.5GB of s3', 'E<n> within <n>s, <n>GB of s<n>'],
    ['Base64DecodeError at 5', 'Base64DecodeError at <n>'],
    ['mail to a.b+c@d-e.example.org. bounced', 'mail to <email>. bounced'],
    ['a@b@c, @d and e@', '<email>@c, @d and e@'],
    ['GET /v1/orders/a1b2/lines?page=3', 'GET /<n>/orders/<n>/lines?page=<n>'],
    ['C:\\temp\\job7\\log', 'C:\\temp\\<n>\\log'],
    ['http://10.0.0.7:80/x', 'http://<n>:<n>/x'],
    ['fe80::1, [2001:db8::ff00:42:8329]:80 and 00:1b:44:11:3a:b7', '<n>, [<n>]:<n> and <n>'],
    ['std::bad_alloc in Foo::Bar', 'std::bad_alloc in Foo::Bar'],
    ['at 2026-11-15T12:00:00.123Z, 2026-11-15 12:00 +01:00 or 2026-11-15', 'at <n>, <n> or <n>'],
    ['for abcdefab-abcd-abcd-abcd-abcdefabcdef', 'for <n>'],
    ["can't open '/a/b': it isn't there", "can't open <text>: it isn't there"],
    ['10.0.0.7:5432 refused', '<n> refused'],
    ['  two\n  lines ', 'two lines'],
  ])('variable parts are replaced: %j becomes %j', (message, title) => {
    expect(normalize(message)).toBe(title)
  })

  it('the fast path for messages with numbers only gives the same result', () => {
    const pieces = [
      '0',
      '0x',
      '1f',
      '12.5',
      'ab',
      'Xyz',
      'abcdefabcdef',
      '2026-11-15',
      '12:30:45',
      '@',
      '/',
      '::',
      'Error',
      'a1b2c3d4e5f6',
      '-',
      '_',
      ' ',
      '.',
      ':',
      'é',
      '\n',
    ]
    const uuid = 'abcdefab-abcd-abcd-abcd-abcdefabcdef'
    const message = fc
      .array(fc.constantFrom(...pieces, uuid), { maxLength: 12 })
      .map((parts) => parts.join(''))
    // A quoted text at the end forces the slow path, and only that text is replaced in addition.
    const quoted = (text: string) => normalize(`${text} 'x'`)
    fc.assert(
      fc.property(message, (text) => {
        expect(`${normalize(text)} <text>`.trim()).toBe(quoted(text))
      }),
    )
  })
})
