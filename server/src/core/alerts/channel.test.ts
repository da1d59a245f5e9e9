import { describe, expect, it } from 'vitest'
import {
  channelKinds,
  decodeTarget,
  type FieldValues,
  findChannelNameProblem,
  splitTarget,
} from './channel.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const valid: readonly (readonly [(typeof channelKinds)[number], FieldValues])[] = [
  ['webhook', { url: 'https://hooks.example.com/a?b=c', secret }],
  ['slack', { url: 'https://hooks.slack.com/services/T0/B0/x' }],
  ['teams', { url: 'https://example.logic.azure.com/workflows/1' }],
  ['discord', { url: 'https://discord.com/api/webhooks/1/x' }],
  ['pagerduty', { routing_key: 'R0123456789' }],
  ['opsgenie', { api_key: 'k-1' }],
  ['telegram', { bot_token: '123456:ABC-def', chat_id: '-100123' }],
  ['email', { host: 'smtp.example.com', from: 'redrive@example.com', to: ['ops@example.com'] }],
]

const problemsOf = (kind: (typeof channelKinds)[number], values: FieldValues) => {
  const decoded = decodeTarget(kind, values)
  return 'problems' in decoded ? decoded.problems.map(({ field, message }) => `${field} ${message}`) : []
}

describe('channels', () => {
  it('every kind has an example in this test', () => {
    expect(valid.map(([kind]) => kind)).toEqual(channelKinds)
  })

  it.each(valid)('a %s channel is the same after it was split and read again', (kind, values) => {
    const decoded = decodeTarget(kind, values)
    if ('problems' in decoded) throw new Error(JSON.stringify(decoded.problems))
    const { shown, secrets } = splitTarget(decoded.target)
    expect(decodeTarget(kind, { ...shown, ...secrets })).toEqual(decoded)
  })

  it.each([
    ['slack', 'url'],
    ['teams', 'url'],
    ['discord', 'url'],
    ['webhook', 'secret'],
    ['pagerduty', 'routing_key'],
    ['opsgenie', 'api_key'],
    ['telegram', 'bot_token'],
  ] as const)('the field %s.%s is among the secrets only', (kind, field) => {
    const [, values = {}] = valid.find(([each]) => each === kind) ?? []
    const decoded = decodeTarget(kind, values)
    if ('problems' in decoded) throw new Error(JSON.stringify(decoded.problems))
    const { shown, secrets } = splitTarget(decoded.target)
    expect(secrets[field]).toBe(values[field])
    expect(shown).not.toHaveProperty(field)
  })

  it.each([
    ['slack', {}, /^url is missing/],
    ['slack', { url: 'ftp://example.com' }, /^url must be a URL/],
    ['slack', { url: 'https://user:secret@example.com/' }, /^url must be a URL/],
    ['slack', { url: `https://example.com/${'a'.repeat(2_000)}` }, /^url must be a URL/],
    ['slack', { url: 'https://example.com/\r\nHost: b' }, /^url must be a URL/],
    ['slack', { url: 'https://example.com/', channel: '#a' }, /^channel is not a field of a slack channel/],
    ['webhook', { url: 'https://example.com/', secret: 'short' }, /^secret is not valid/],
    ['opsgenie', { api_key: 'k\nX: y' }, /^api_key must be/],
    ['opsgenie', { api_key: 'k', api_key_header: 'a b' }, /^api_key_header must be/],
    ['telegram', { bot_token: '1:a/../b', chat_id: '1' }, /^bot_token must be/],
    ['telegram', { bot_token: '1:a', chat_id: 'x y' }, /^chat_id must be/],
    ['email', { host: 'h', from: 'a@b.c\r\nBcc: d@e.f', to: ['a@b.c'] }, /^from must be/],
    ['email', { host: 'h', from: 'a@b.c', to: ['a@b.c, d@e.f'] }, /^to must be/],
    ['email', { host: 'h', from: 'a@b.c', to: [] }, /^to must be/],
    ['email', { host: 'h', from: 'a@b.c', to: Array(51).fill('a@b.c') }, /^to must be/],
    ['email', { host: 'h', port: 0, from: 'a@b.c', to: ['a@b.c'] }, /^port must be/],
    ['email', { host: 'h', user: 'u', from: 'a@b.c', to: ['a@b.c'] }, /^password is missing/],
    [
      'email',
      { host: 'h', tls: 'none', user: 'u', password: 'p', from: 'a@b.c', to: ['a@b.c'] },
      /^tls must not/,
    ],
    ['email', { host: 'h', tls_ca: 'no certificate', from: 'a@b.c', to: ['a@b.c'] }, /^tls_ca must be/],
    ['pagerduty', JSON.parse('{"routing_key":"k","__proto__":{"url":1}}'), /^__proto__ is not a field/],
  ] as const)('a %s channel with %j is refused', (kind, values, problem) => {
    expect(problemsOf(kind, values)).toEqual([expect.stringMatching(problem)])
  })

  it('a reference is not checked before it is resolved', () => {
    const values = { url: 'env:SLACK_URL' }
    expect(decodeTarget('slack', values)).toHaveProperty('problems')
    expect(decodeTarget('slack', values, (field) => field === 'url')).toHaveProperty('target')
  })

  it.each(['', '.', '-a', 'a b', 'a/b', 'ä', 'a'.repeat(101)])('%j is not the name of a channel', (name) => {
    expect(findChannelNameProblem(name)).toContain('letters')
  })
})
