import { describe, expect, it } from 'vitest'
import { type HealthCheck, readHealth } from './health.ts'

const checkedAt = new Date('2026-01-02T03:04:05Z')

const check = (name: string, reason: string | null): HealthCheck => ({
  name,
  componentType: 'datastore',
  read: () => ({ isUp: reason === null, reason, checkedAt }),
})

describe('health', () => {
  it('the health passes when every component passes', () => {
    expect(readHealth([check('queues:storage', null)], '1.2.3')).toEqual({
      status: 'pass',
      version: '1.2.3',
      checks: {
        'queues:storage': [{ componentType: 'datastore', status: 'pass', time: '2026-01-02T03:04:05.000Z' }],
      },
    })
  })

  it('the health fails when one component fails, and reports the component and the reason', () => {
    const health = readHealth(
      [check('queues:storage', null), check('kafka:bridge', 'no broker answers')],
      '1',
    )
    expect(health.status).toBe('fail')
    expect(health.checks['queues:storage']).toMatchObject([{ status: 'pass' }])
    expect(health.checks['kafka:bridge']).toMatchObject([{ status: 'fail', output: 'no broker answers' }])
  })
})
