import { format, inspect } from 'node:util'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { Secret } from './secret.ts'

it('no form of printing shows the value of a secret', () => {
  const secret = new Secret('hush')
  const lines: string[] = []
  pino({}, { write: (line: string) => lines.push(line) }).info({ secret, nested: { secret } }, 'message')
  const prints = [
    `${secret}`,
    String(secret),
    JSON.stringify({ secret }),
    inspect(secret, { showHidden: true, depth: 9 }),
    format('%s %o %O %j', secret, secret, secret, secret),
    Object.entries(secret).join(),
    ...lines,
  ]
  expect(prints.join()).not.toContain('hush')
  expect(`${secret}`).toBe('[secret]')
  expect(secret.reveal()).toBe('hush')
})
