import { describe, expect, it } from 'vitest'
import type { Failure, Item } from '../items/item.ts'
import {
  createRedaction,
  findRedactionProblem,
  type RedactionRule,
  redactionBounds,
} from './redaction-rules.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const toText = (value: Uint8Array | null) => (value === null ? null : new TextDecoder().decode(value))
const open = (...rules: RedactionRule[]) => createRedaction({ rules, isContentShown: true })
const card = { pattern: '\\b\\d{4} \\d{4}\\b' }

describe('the redaction rules of a queue', () => {
  it('without rules the payload is hidden and error texts are shown', () => {
    const redaction = createRedaction(undefined)
    expect(toText(redaction.payload(bytes('{"a":1}'), false))).toBe('[redacted]')
    expect(redaction.text('card 1111 2222 refused')).toBe('card 1111 2222 refused')
  })

  it('rules alone do not open the payload', () => {
    const redaction = createRedaction({ rules: [card], isContentShown: false })
    expect(toText(redaction.payload(bytes('{"a":1}'), false))).toBe('[redacted]')
    expect(redaction.text('card 1111 2222 refused')).toBe('card [redacted] refused')
  })

  it('a path hides values of every type, also below every element of a list', () => {
    const redaction = open({ path: ['cards', null, 'number'] }, { path: ['owner'] })
    const payload = {
      cards: [{ number: 1, kind: 'a' }, { number: '2' }, 3],
      owner: { name: 'Ann' },
      total: 5,
    }
    expect(JSON.parse(toText(redaction.payload(bytes(JSON.stringify(payload)), false)) ?? '')).toEqual({
      cards: [{ number: '[redacted]', kind: 'a' }, { number: '[redacted]' }, 3],
      owner: '[redacted]',
      total: 5,
    })
  })

  it('a path to __proto__ hides the field with this name and changes no object', () => {
    const shown = toText(open({ path: ['__proto__'] }).payload(bytes('{"__proto__":"x","a":1}'), false))
    expect(shown).toBe('{"__proto__":"[redacted]","a":1}')
    expect(({} as Record<string, unknown>).length).toBeUndefined()
  })

  it.each([
    ['that is not JSON, if there is a path', { path: ['a'] }, bytes('a=1'), false],
    ['that is not text', card, new Uint8Array([0xff, 0xfe]), false],
    ['of which only the beginning was read', card, bytes('1111 22'), true],
    ['that is longer than the limit', card, bytes('x'.repeat(redactionBounds.textMax + 1)), false],
  ] as const)('a payload %s is hidden as a whole', (_, rule, payload, isCut) => {
    expect(toText(open(rule).payload(payload, isCut))).toBe('[redacted]')
  })

  it('a payload that is nested deeply does not fail', () => {
    const payload = `${'['.repeat(16_000)}"1111 2222"${']'.repeat(16_000)}`
    const shown = toText(open(card, { path: [0, 0] }).payload(bytes(payload), false))
    expect(shown).not.toContain('1111')
  })

  it('an escaped or repeated field of JSON does not hide a match from a pattern', () => {
    const escaped = '{"card":"\\u0031111 2222","card2":"1111 2222"}'
    expect(toText(open(card).payload(bytes(escaped), false))).toBe(
      '{"card":"[redacted]","card2":"[redacted]"}',
    )
    const repeated = '{"card":"1111 2222","card":"none"}'
    expect(toText(open({ path: ['card'] }).payload(bytes(repeated), false))).toBe('{"card":"[redacted]"}')
  })

  it('a pattern with a group hides only the group', () => {
    expect(open({ pattern: 'user=(\\w+)' }).text('user=ann failed')).toBe('user=[redacted] failed')
  })

  it('header rules ignore case, secret headers stay hidden, and patterns also match values', () => {
    const redaction = open({ header: 'X-Customer' }, card)
    const shown = (['x-customer', 'authorization', 'x-note', 'x-empty'] as const).map((name) =>
      toText(redaction.header([name, name === 'x-empty' ? null : bytes('card 1111 2222')])[1]),
    )
    expect(shown).toEqual(['[redacted]', '[redacted]', 'card [redacted]', null])
  })

  it('patterns apply to all texts of all failures of an item', () => {
    const failure = {
      errorClass: 'Refused 1111 2222',
      message: '1111 2222',
      stack: 'at 1111 2222',
      fingerprint: '1111 2222',
    } as Failure
    const item = { payload: bytes(''), key: bytes('1111 2222'), headers: [], reference: '1111 2222' }
    const shown = open(card).item({ ...item, failure, history: [failure] } as unknown as Item)
    expect(JSON.stringify({ ...shown, key: toText(shown.key) })).not.toContain('1111 2222')
  })

  it('a text longer than the limit loses its end, so that a match across the limit is not shown', () => {
    const text = `${'x '.repeat(redactionBounds.textMax / 2 - 3)}1111 2222 tail`
    const shown = open(card).text(text)
    expect(shown).not.toContain('1111 2')
    expect(shown).not.toContain('tail')
    expect(shown.endsWith('[redacted]')).toBe(true)
  })

  it('the earlier failures of an item are examined up to a limit, and hidden behind it', () => {
    const failure = { errorClass: 'E', message: 'm', stack: 's'.repeat(30_000) } as Failure
    const item = { payload: bytes(''), key: null, headers: [], reference: '', failure: null }
    const { history } = open(card).item({ ...item, history: Array(20).fill(failure) } as unknown as Item)
    expect(history.filter(({ stack }) => stack.length > 100)).toHaveLength(4)
    expect(history.at(-1)).toMatchObject({ message: '[redacted]', stack: '[redacted]' })
  })

  it.each([
    ['(', /not valid RE2/],
    ['a*', /matches an empty text/],
    ['x{1000}x{1000}', /instructions together|not valid RE2/],
    ['(?=x)', /not valid RE2/],
  ])('the pattern %s is refused', (pattern, problem) => {
    expect(findRedactionProblem([{ pattern }])).toMatch(problem)
  })
})
