import { describe, expect, it } from 'vitest'
import { aFailure, aQueue } from '../../../../test/make.ts'
import type { LetterFacts } from '../../../core/items/item.ts'
import { decodeFacts, decodeFailure, encodeFacts, encodeFailure } from '../items/item-row.ts'
import { encodePolicy } from '../items/queue-row.ts'

/** Databases of earlier versions, and the SQL functions for people, have these names. */
describe('stored JSON keeps the names of its first version', () => {
  it('the error code of a failure is stored as reason', () => {
    const failure = aFailure({ errorCode: 'http_503' })
    const stored = JSON.parse(encodeFailure(failure) ?? '')
    expect(stored).toMatchObject({ reason: 'http_503' })
    expect(stored).not.toHaveProperty('errorCode')
    expect(decodeFailure(encodeFailure(failure))).toEqual(failure)
  })

  it('the counts and positions of a letter are stored as requeues and place', () => {
    const record = {
      number: 1,
      at: 1,
      actor: 'ann',
      campaign: { id: 'c1', position: 7 },
      target: { kind: 'queue', name: 'orders', partition: 0, id: 'a' },
      edit: null,
      outcome: null,
      endedAt: null,
    } as const
    const facts: LetterFacts = {
      requeueCount: 1,
      lastRedriveAt: 1,
      redrives: [record, { ...record, campaign: null }],
      nextRedriveAt: null,
      discardReason: '',
    }
    const stored = JSON.parse(encodeFacts(facts) ?? '')
    expect(stored).toMatchObject({
      requeues: 1,
      redrives: [{ campaign: { id: 'c1', place: 7 } }, { campaign: null }],
    })
    expect(stored).not.toHaveProperty('requeueCount')
    expect(decodeFacts(encodeFacts(facts), null)).toEqual(facts)
  })

  it('the times of a policy are stored as leaseUs, expireUs and keepDoneUs', () => {
    const times = { leaseTimeoutUs: 1, expireTimeoutUs: 2, doneRetentionUs: 3 }
    const stored = JSON.parse(encodePolicy(aQueue(times)))
    expect(stored).toMatchObject({ leaseUs: 1, expireUs: 2, keepDoneUs: 3 })
    for (const name of Object.keys(times)) expect(stored).not.toHaveProperty(name)
  })
})
