import { describe, expect, it } from 'vitest'
import type { CampaignSpec } from '../letters.ts'
import { checkReason, checkSpec, completeFilter } from './spec.ts'

const spec: CampaignSpec = {
  name: ' after the fix ',
  action: 'redrive',
  selection: { letterIds: ['0ujtsYcgvSTl8PAuAdqWYSMnLOv'] },
  target: 'orders',
  isDeadAllowed: false,
  canaryCount: 5,
  ratePerSecond: 10,
  rampUs: 0,
  haltRatio: 0.1,
  haltMin: 10,
  limit: null,
  expectedCount: null,
}

describe('the spec of a campaign', () => {
  it('the name of a campaign is trimmed', () => {
    expect(checkSpec(spec)).toEqual({ ...spec, name: 'after the fix' })
  })

  it('a discard campaign has no target', () => {
    expect(checkSpec({ ...spec, action: 'discard' })).toMatchObject({ target: null })
  })

  it.each<[string, Partial<CampaignSpec>]>([
    ['needs a name', { name: '  ' }],
    ['the name has 201 characters', { name: 'x'.repeat(201) }],
    ['contains a NUL character', { name: 'a\0b' }],
    ['contains an unpaired surrogate', { selection: { filter: { text: '\ud800' } } }],
    ['canaryCount is -1', { canaryCount: -1 }],
    ['canaryCount is 0.5', { canaryCount: 0.5 }],
    ['ratePerSecond is NaN', { ratePerSecond: Number.NaN }],
    ['rampUs is -1', { rampUs: -1 }],
    ['a ramp has no effect without a rate', { rampUs: 1, ratePerSecond: 0 }],
    ['haltRatio is 1.1', { haltRatio: 1.1 }],
    ['haltMin is -1', { haltMin: -1 }],
    ['the selection names no letters', { selection: { letterIds: [] } }],
    ['"x" is not a letter id', { selection: { letterIds: ['0ujtsYcgvSTl8PAuAdqWYSMnLOv', 'x'] } }],
    ['the selection names 10001 letters', { selection: { letterIds: Array(10_001).fill('a') } }],
  ])('a campaign spec is refused: %s', (sentence, change) => {
    expect(() => checkSpec({ ...spec, ...change })).toThrow(sentence)
  })

  it('a campaign needs a reason', () => {
    expect(() => checkReason(' ')).toThrow('needs a reason')
    expect(checkReason(' INC-1 ')).toBe('INC-1')
  })
})

describe('a filter', () => {
  const redrive = { action: 'redrive', isDeadAllowed: false } as const

  it('a filter without states selects letters that can be sent or discarded', () => {
    expect(completeFilter(redrive, {}).states).toEqual(['waiting', 'scheduled'])
    expect(completeFilter({ ...redrive, isDeadAllowed: true }, {}).states).toContain('dead')
    expect(completeFilter({ ...redrive, action: 'discard' }, {}).states).toContain('dead')
    expect(completeFilter(redrive, { states: ['dead'] }).states).toEqual(['dead'])
  })
})
