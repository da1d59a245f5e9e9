import { describe, expect, it } from 'vitest'
import { isLoopback, parseHost } from './loopback.ts'

describe('isLoopback', () => {
  it.each([
    '127.0.0.1',
    '127.0.0.2',
    '127.255.255.254',
    '::1',
    '[::1]',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::FFFF:127.8.8.8',
    'localhost',
    'LOCALHOST',
    'localhost.',
    'redrive.localhost',
  ])('isLoopback is true for %s', (host) => expect(isLoopback(host)).toBe(true))

  it.each([
    '0.0.0.0',
    '::',
    '',
    '128.0.0.1',
    '10.0.0.1',
    '::ffff:10.0.0.1',
    '::2',
    'localhost.example.com',
    'notlocalhost',
    '127.0.0.1.example.com',
    '127.1',
    '2130706433',
    'example.com',
  ])('isLoopback is false for "%s"', (host) => expect(isLoopback(host)).toBe(false))
})

describe('parseHost', () => {
  it.each([
    ['localhost:8080', 'localhost'],
    ['localhost', 'localhost'],
    ['127.0.0.1:1', '127.0.0.1'],
    ['[::1]:8080', '[::1]'],
    ['[::ffff:127.0.0.1]', '[::ffff:127.0.0.1]'],
  ])('parseHost removes the port from %s', (authority, host) => expect(parseHost(authority)).toBe(host))

  it.each(['', 'a b', 'user@localhost', 'localhost:port', '::1', 'localhost/evil', '[::1'])(
    'parseHost refuses "%s"',
    (authority) => expect(parseHost(authority)).toBeNull(),
  )
})
