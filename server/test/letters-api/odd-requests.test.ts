import { expect, it } from 'vitest'
import fc from '../fast-check.ts'
import { createEnvelope, describeLettersServers } from './servers.ts'

const counted = [
  'queue',
  'letter_class',
  'status',
  'error_code',
  'slug',
  'error_class',
  'group_id',
  'origin',
  'retry_count_min',
]
const searched = [
  'dead_lettered_from',
  'updated_until',
  'last_failed_from',
  'key_text',
  'key_base64',
  'message',
  'header',
  'json',
]
const page = ['cursor', 'limit']
const parameters: Readonly<Record<string, readonly string[]>> = {
  letters: [...counted, ...searched, ...page, 'order_by', 'order'],
  'letters/export': [...counted, ...searched, 'cursor'],
  'letters/counts': [...counted, 'by'],
  groups: [...counted, ...page],
  archive: ['queue', 'letter_class', ...page],
  audit: ['target', 'action', 'actor', ...page],
  campaigns: page,
}

const cursor = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString('base64url')
const value = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.integer().map(String),
  fc.constantFrom(
    ...[
      '%',
      '_',
      '\\',
      "'",
      '"',
      '\0',
      '\ufffe\uffff',
      '\u0130\u212a',
      'ß',
      '=',
      'h=',
      '=v',
      'h=v',
      'k',
      'standard',
    ],
    ...[
      '$.a=1',
      '$.a.b=1',
      '$["a"]=',
      '$[0]=x',
      '$.a="\\ud800"',
      '$["\\u0000"]=1',
      '$.a=1e400',
      '$.__proto__=1',
    ],
    ...[
      '2026-01-01T00:00:00Z',
      '9999-12-31T23:59:59.999999999Z',
      '0000-01-01T00:00:00Z',
      '2026-02-31T00:00:00+14:00',
    ],
    ...[
      'PENDING',
      'DISCARDED',
      '0',
      '-1',
      '1',
      '9007199254740993',
      '1e400',
      'null',
      'true',
      'queue,status',
      'dead_lettered_at',
    ],
    cursor('letters:dead_lettered_at:desc', -1, 'a'),
    cursor('letters:dead_lettered_at:desc', Number.MAX_SAFE_INTEGER, '\u00ff'),
    cursor('groups', 1, -1),
    cursor('archive', 0, ''),
    cursor('audit', -5),
    cursor('campaigns', '~'),
  ),
)

describeLettersServers('odd requests about letters', (api) => {
  it('random queries are answered with 200 or 400 and log no error', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(
      dead,
      createEnvelope(queue, { original_value: { a: { b: 1 } }, original_key: 'k', headers: { h: 'v' } }),
    )
    const request = fc.constantFrom(...Object.keys(parameters)).chain((path) =>
      fc.tuple(
        fc.constant(path),
        fc.array(fc.tuple(fc.constantFrom(...(parameters[path] ?? [])), value), {
          minLength: 1,
          maxLength: 3,
        }),
      ),
    )
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(request, async ([path, pairs]) => {
        const query = pairs
          .map(([name, text]) => `${name}=${encodeURIComponent(text.toWellFormed())}`)
          .join('&')
        const response = await fetch(`${api.url}/api/v1/${path}?${query}`)
        const text = await response.text()
        statuses.add(response.status)
        expect([200, 400], `${path}?${query} ${text}`).toContain(response.status)
        // An export that fails after it began reports the error in its last line.
        expect(text).not.toContain('"INTERNAL"')
      }),
      { numRuns: 300 },
    )
    expect(statuses).toEqual(new Set([200, 400]))
    expect(api.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  it.each([
    ['empty', ''],
    ['not JSON', '{'],
    ['a list', '[]'],
    ['a text', '"x"'],
    ['null', 'null'],
    ['an object with numeric ids', '{"ids":[1]}'],
    ['an object with an empty id', '{"ids":[""],"reason":"x","action":"redrive","name":"n"}'],
    [
      'an object with a NUL character in an id',
      '{"ids":["a\\u0000b"],"reason":"x","action":"redrive","name":"n"}',
    ],
    [
      'an object with an unpaired surrogate',
      '{"ids":["a"],"reason":"\\ud800","action":"redrive","name":"n"}',
    ],
    ['an object with an unknown field', '{"ids":["a"],"reason":"x","force":true}'],
  ])('a body that is %s is refused by every route that needs it', async (_name, body) => {
    const paths = [
      'letters',
      'letters/redrive',
      'letters/discard',
      'letters/restore',
      'campaigns',
      'campaigns/preview',
    ]
    const withoutBody = [`letters/${'0'.repeat(27)}/redrive`, `campaigns/${'0'.repeat(27)}/pause`]
    for (const path of body === '' ? paths : [...paths, ...withoutBody]) {
      const response = await fetch(`${api.url}/api/v1/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      expect([path, response.status]).toEqual([path, 400])
    }
  })
})
