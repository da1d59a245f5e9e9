import { describe, expect, it } from 'vitest'
import { parseAlertRules } from '../../src/config/alert-rules.ts'
import { startTestServer } from '../http/test-server.ts'

const parse = (rules: unknown) => parseAlertRules(JSON.stringify(rules))

describe('rules of redrive.yaml', () => {
  it('a rule of the configuration is shown, and cannot be changed through the API', async () => {
    const rules = parse([
      { name: 'Backlog', condition: { type: 'letters', count_min: '100' } },
      { name: 'DLQFinancial', severity: 'info' },
    ])
    const { url } = await startTestServer({ 'alerts.rules': rules })
    const call = async (method: string, name: string, body?: object) => {
      const answer = await fetch(`${url}/api/v1/alerts/rules/${name}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: await answer.json() }
    }
    expect((await call('GET', 'Backlog')).body).toMatchObject({
      source: 'configuration',
      severity: 'warning',
      condition: { type: 'letters', count_min: 100 },
    })
    expect((await call('GET', 'DLQFinancial')).body).toMatchObject({
      source: 'configuration',
      severity: 'info',
      condition: { letter_classes: ['financial'] },
    })
    for (const [method, body] of [
      ['PUT', { is_enabled: false }],
      ['DELETE', {}],
    ] as const) {
      const refused = await call(method, 'DLQFinancial', body)
      expect(refused).toMatchObject({ status: 409, body: { error: { code: 'ALERT_RULE_FIXED' } } })
    }
  })

  it('a mistake in a rule stops the start, and names the field', () => {
    expect(() => parse([{ name: 'A', condition: { type: 'letters', count: '1' } }])).toThrow(
      'alerts.rules[0].condition.count is not known',
    )
    expect(() => parse([{ name: 'a b', condition: { type: 'count-drift' } }])).toThrow('alerts.rules[0].name')
    const twice = { name: 'A', condition: { type: 'count-drift' } }
    expect(() => parse([twice, twice])).toThrow('alerts.rules has A twice')
    expect(() => parse({ name: 'A' })).toThrow('alerts.rules must be a list')
  })
})
