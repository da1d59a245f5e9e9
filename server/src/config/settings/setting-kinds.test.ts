import { describe, expect, it } from 'vitest'
import { boolean, bytes, choice, duration, integer, list, secret, string } from './setting-kinds.ts'

const sentence = 'A description.'

describe('values of settings', () => {
  const port = integer({ sentence, default: 1, min: 0, max: 65_535 })
  const wait = duration({ sentence, default: '5s', min: '100ms', max: '1h' })
  const size = bytes({ sentence, default: '1MiB', min: '1KiB', max: '1GiB' })
  const mode = choice({ sentence, choices: ['full', 'fast'], default: 'full' })

  it.each([
    [port, '0', 0],
    [port, '65535', 65_535],
    [port, '65536', undefined],
    [port, '-1', undefined],
    [port, '80.5', undefined],
    [port, '8e1', undefined],
    [port, '', undefined],
    [wait, '1.5s', 1_500],
    [wait, '1h', 3_600_000],
    [wait, '99ms', undefined],
    [wait, '10', undefined],
    [wait, 'soon', undefined],
    [size, '1KiB', 1_024],
    [size, '2mb', 2_000_000],
    [size, '1.5 KiB', 1_536],
    [size, '4096', 4_096],
    [size, '1TB', undefined],
    [size, '0.3KiB', undefined],
    [size, '12', undefined],
    [mode, 'fast', 'fast'],
    [mode, 'FAST', undefined],
    [boolean({ sentence }), 'true', true],
    [boolean({ sentence }), 'false', false],
    [boolean({ sentence }), 'yes', undefined],
    [string({ sentence }), 'a b', 'a b'],
    [string({ sentence }), '  ', undefined],
    [string({ sentence, pattern: /^x/ }), 'y', undefined],
    [list({ sentence }), 'a, b', ['a', 'b']],
    [list({ sentence }), 'a,,b', undefined],
  ])('case %#: the setting %o parses %j as %j', (setting, text, value) => {
    expect(setting.parse(text)).toEqual(value)
  })

  it('allowed values are described in short form and as the end of a sentence', () => {
    expect([port.bounds, port.allowed]).toEqual(['0 to 65535', 'a whole number from 0 to 65535'])
    expect(wait.bounds).toBe('100ms to 1h')
    expect(size.bounds).toBe('1KiB to 1GiB')
  })

  it('values are formatted in the shortest form', () => {
    expect(wait.format(600_000)).toBe('10m')
    expect(wait.format(7_200_000)).toBe('2h')
    expect(wait.format(125_000)).toBe('2m5s')
    expect(size.format(64_000_000)).toBe('64MB')
    expect(size.format(1_000_001)).toBe('1000001')
    expect(list({ sentence }).format(['a', 'b'])).toBe('a,b')
  })
})

describe('secret settings', () => {
  const token = secret({ sentence })

  it('a secret is shown as its reference or as [secret]', () => {
    expect(token.format(token.parse('file:/run/secrets/token'))).toBe('file:/run/secrets/token')
    expect(token.format(token.parse('hush'))).toBe('[secret]')
  })

  it.each(['', 'file:', 'env:', 'env:A B', 'vault:secret/x', 'vault:#key', 'vault:x#key'])(
    'the text %j is not a valid secret',
    (text) => {
      expect(token.parse(text)).toBeUndefined()
    },
  )
})
