import { describe, expect, it } from 'vitest'
import { checkHosts, formatHost, parseStoreUrl, readHosts, removeHosts } from './hosts.ts'

const parse = (text: string): URL => {
  const url = parseStoreUrl(text)
  if (url === null) throw new Error(`${text} was not parsed`)
  return url
}
const hostsOf = (text: string) => readHosts(parse(text)).map(formatHost)

describe('a store URL with several hosts', () => {
  it.each([
    ['postgres://app@db1:5433,db2:5434/q', ['db1:5433', 'db2:5434']],
    ['postgres://app:pass,word@db1,db2:5434/q?sslmode=require', ['db1:5432', 'db2:5434']],
    ['postgres://[::1]:5433,[fd00::2],10.0.0.3/q', ['[::1]:5433', '[fd00::2]:5432', '10.0.0.3:5432']],
    ['postgres:///q?host=db1,db2&port=5433,5434', ['db1:5433', 'db2:5434']],
    ['postgres:///q?host=db1,db2&port=5433', ['db1:5433', 'db2:5433']],
    ['postgres:///q?host=db1,db2', ['db1:5432', 'db2:5432']],
  ])('the hosts of %s are read with their ports', (text, hosts) => {
    expect(hostsOf(text)).toEqual(hosts)
  })

  it.each(['postgres://app@db1:5433/q', 'postgres:///q?host=/run/postgresql', 'postgres://db/q?port=5433'])(
    'the URL %s has one host, which the driver reads',
    (text) => {
      expect(hostsOf(text)).toEqual([])
      expect(removeHosts(parse(text)).href).toBe(text)
    },
  )

  it('the driver gets a URL with the first host, user, database and other parameters', () => {
    const url = parse('postgres://app:hu%40sh@db1:5433,db2/q?sslmode=require&target_session_attrs=primary')
    expect(removeHosts(url).href).toBe('postgres://app:hu%40sh@db1:5433/q?sslmode=require')
  })

  it.each([
    'postgres://db1,/q',
    'postgres://db1:x,db2/q',
    'postgres://db1,db 2/q',
    'postgres://db1,db2/q?host=db3',
    'postgres://db1,db2/q?port=5433',
  ])('the URL %s is not parsed', (text) => {
    expect(parseStoreUrl(text)).toBeNull()
  })

  it.each([
    ['postgres:///q?host=db1,db2,db3&port=1,2', '3 hosts and 2 ports'],
    ['postgres:///q?host=db1,db2&port=1,70000', 'a port that is not a number'],
    ['postgres:///q?host=db1,', 'the host ""'],
    [`postgres:///q?host=${Array(17).fill('db').join(',')}`, 'at most 16'],
    ['postgres://db1,db2/q?target_session_attrs=any', 'target_session_attrs=any: omit it'],
  ])('the URL %s is refused', (text, message) => {
    expect(() => checkHosts(parse(text))).toThrow(message)
  })
})
