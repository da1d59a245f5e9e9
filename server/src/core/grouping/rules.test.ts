import { describe, expect, it } from 'vitest'
import { toCause } from '../dead-letters/cause.ts'
import { compileRules, findRuleProblem, type GroupingRule, ruleBounds } from './rules.ts'

const failure = (message: string) => ({
  errorCode: 'r',
  errorClass: 'E',
  message,
  stack: '',
  attempts: 1,
  firstFailedAt: 0,
  lastFailedAt: 0,
  worker: '',
})
const causeOf = (message: string, rules: readonly GroupingRule[], payload: unknown = {}) =>
  toCause(failure(message), { name: 'q' }, compileRules(rules), Buffer.from(JSON.stringify(payload)))

describe('rules of a queue about its messages', () => {
  const customer: GroupingRule = { name: 'customer', as: 'variable', pattern: 'customer ([A-Za-z ]+) has' }

  it('a variable is shown by its name and does not separate causes', () => {
    const [a, b] = ['Anna Berg', 'Cid'].map((name) => causeOf(`customer ${name} has no card`, [customer]))
    expect(a?.title).toBe('customer <customer> has no card')
    expect(a?.fingerprint).toBe(b?.fingerprint)
  })

  it('a code separates causes and is part of the title', () => {
    const rule: GroupingRule = { name: 'region', as: 'code', pattern: 'region (\\w+)' }
    const [eu, us] = ['eu', 'us'].map((region) => causeOf(`no stock in region ${region}`, [rule]))
    expect(eu?.fingerprint).not.toBe(us?.fingerprint)
    expect(eu?.bucket).not.toBe(us?.bucket)
    expect(eu?.title).toBe('no stock in region eu [region=eu]')
  })

  it('a path reads a value of the payload, as a code or as a variable of the message', () => {
    const code: GroupingRule = { name: 'type', as: 'code', path: ['event', 'type'] }
    expect(causeOf('failed', [code], { event: { type: 'paid' } }).codes).toContain('type=paid')
    expect(causeOf('failed', [code], { event: {} }).codes).toEqual([])
    const name: GroupingRule = { name: 'shop', as: 'variable', path: ['shop'] }
    expect(causeOf('shop Blue Door is closed', [name], { shop: 'Blue Door' }).title).toBe(
      'shop <shop> is closed',
    )
  })

  it('a payload that is not JSON, or too large, has no value', () => {
    const rules = compileRules([{ name: 'a', as: 'code', path: ['a'] }])
    expect(rules?.apply('m', Buffer.from('{"a":'))).toEqual({ message: 'm', codes: [] })
    const large = Buffer.from(JSON.stringify({ a: 1, b: 'x'.repeat(ruleBounds.payloadMax) }))
    expect(rules?.apply('m', large)).toEqual({ message: 'm', codes: [] })
  })

  it('invalid and too large patterns are refused with a sentence', () => {
    const problem = (...patterns: readonly string[]) =>
      findRuleProblem(patterns.map((pattern) => ({ name: 'p', as: 'code', pattern })))
    expect(problem('ok')).toBeUndefined()
    expect(problem('(a')).toContain('missing closing )')
    expect(problem('(?=a)b')).toContain('not valid RE2')
    expect(problem('a*')).toContain('matches an empty text')
    expect(problem('a'.repeat(501))).toContain('the limit is 500')
    expect(problem(...Array.from({ length: 21 }, () => 'a'))).toContain('the limit is 20')
    expect(problem('(a|b){900}', '(c|d){900}')).toContain('instructions together')
  })

  it('a hostile message takes time linear in its length', () => {
    const rules = compileRules([{ name: 'p', as: 'variable', pattern: '(x+x+)+y' }])
    const startedAt = performance.now()
    for (let round = 0; round < 20; round++) rules?.apply(`${'x'.repeat(2_000)}z y`, undefined)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  it('equal rules of two readings are compiled once', () => {
    expect(compileRules([{ ...customer }])).toBe(compileRules([{ ...customer }]))
  })
})
