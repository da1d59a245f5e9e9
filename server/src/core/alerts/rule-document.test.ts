import { describe, expect, it } from 'vitest'
import { builtInRules, findBuiltInRule } from './built-in-rules.ts'
import { decodeRule, encodeRule, type RuleFields } from './rule-document.ts'

const decode = (fields: RuleFields, name = 'Backlog') =>
  decodeRule(name, '_system', fields, findBuiltInRule(name))
const problemsOf = (fields: RuleFields) => {
  const decoded = decode(fields)
  return 'problems' in decoded ? decoded.problems.map(({ field }) => field) : []
}

describe('the document of a rule', () => {
  it('every built-in rule is read again as it was written', () => {
    for (const rule of builtInRules) {
      expect(decodeRule(rule.name, rule.namespace, encodeRule(rule))).toEqual({ rule })
    }
  })

  it('the texts of redrive.yaml are read like the values of JSON', () => {
    const condition = { type: 'inflow', count_min: '100', window: '5m', queues: ['shop-*'] }
    const decoded = decode({ condition, is_enabled: 'false', hold: '90s', repeat_interval: 'never' })
    expect(decoded).toMatchObject({
      rule: {
        isEnabled: false,
        holdUs: 90_000_000,
        repeatUs: null,
        condition: { type: 'inflow', countMin: 100, windowUs: 300_000_000, queues: ['shop-*'] },
      },
    })
  })

  it('a built-in rule keeps its values for fields that are left out', () => {
    const rule = findBuiltInRule('DLQFinancial')
    expect(decode({ is_enabled: false }, 'DLQFinancial')).toEqual({ rule: { ...rule, isEnabled: false } })
  })

  it('every field that is wrong is named, in the condition too', () => {
    expect(problemsOf({})).toEqual(['condition.type'])
    expect(
      problemsOf({ condition: { type: 'count-drift' }, hold: 'soon', severity: 'bad', colour: 'red' }),
    ).toEqual(['colour', 'severity', 'hold'])
    expect(problemsOf({ condition: { type: 'inflow', count_min: 0, window: '25h', age: '1h' } })).toEqual([
      'condition.age',
      'condition.count_min',
      'condition.window',
    ])
    expect(problemsOf({ condition: { type: 'group' } })).toEqual(['condition.kinds'])
    expect(problemsOf({ condition: { type: 'finding', findings: ['unknown'] } })).toEqual([
      'condition.findings',
    ])
  })
})
