import { describe, expect, it } from 'vitest'
import { toReasonSlug } from './reason.ts'

describe('the reason of a failure as one word', () => {
  it.each([
    ['network timeout', 'network'],
    ['HTTP 503: upstream', 'http_503'],
    ['Soulseek error: peer', 'soulseek_error'],
    ['[Errno 111] x', 'errno'],
    [':x', 'unknown'],
    ['!!!', 'unknown'],
    ['連線逾時', '連線逾時'],
    ['Zeitüberschreitung nach 3 s', 'zeitüberschreitung'],
    ['Тайм-аут: сервер', 'тайм_аут'],
    ['', 'unknown'],
    ['   ', 'unknown'],
    [null, 'unknown'],
    ['  Timeout  after 3 s', 'timeout'],
    ['a:b:c', 'a'],
    ['no credit agreement with Zephyr Air', 'no_credit_agreement'],
    ['could not open the vault, code is missing', 'could_not_open_the_vault'],
    ['book slot for Osprey Labs: rpc error', 'book_slot'],
    ['El cliente Mateus Carvalho no tiene saldo', 'el_cliente_no_tiene_saldo'],
    ["(1205, 'Lock wait timeout exceeded; try again')", '1205_lock_wait_timeout_exceeded'],
  ])('the reason of %j is %s', (message, slug) => {
    expect(toReasonSlug(message)).toBe(slug)
  })

  it.each([
    ['E11000 duplicate key', 'e11000'],
    ['ORA-01017: invalid', 'ora_01017'],
    ['SQLSTATE[42S02]: no table', 'sqlstate_42s02'],
    ['42P01: no table', '42p01'],
    ['x509: unknown authority', 'x509'],
    ['oauth2 error: refused', 'oauth2_error'],
    ['psycopg2.errors.UniqueViolation: twice', 'psycopg2_errors_uniqueviolation'],
    ['Base64DecodeError: odd length', 'base64decodeerror'],
    ['HTTP/1.1 503: upstream', 'http_503'],
    ['exit status 137: killed', 'exit_status_137'],
    ['[Errno 111] Connection refused: x', 'errno_111_connection_refused'],
    ['ERROR 1045 (28000): denied', 'error_1045_28000'],
    ['503 Service Unavailable', '503'],
    ['1045 (28000): denied', '1045_28000'],
    ['3rd party down', '3rd'],
  ])('a code at the head of the message is kept: %j is %s', (message, slug) => {
    expect(toReasonSlug(message)).toBe(slug)
  })

  it.each([
    ['Order 123: not found', 'order'],
    ['order-123: not found', 'order'],
    ['user42: not found', 'user'],
    ['error 1234567: x', 'error'],
    ['123456 not found', 'not_found'],
    ['1234 not found', 'not_found'],
    ['connect ECONNREFUSED 10.0.0.1:5432', 'connect_econnrefused'],
    ['localhost:5432 refused', 'refused'],
    ['10.0.0.1 refused', 'refused'],
    ['fe80::1 refused', 'refused'],
    ['user a.b@example.org: rejected', 'user'],
    ['GET /orders/a1b2: gone', 'get_orders'],
    ['a1b2c: gone', 'gone'],
    ['2026-01-02T03:04:05Z bad', 'bad'],
    ['12:30:45 bad', 'bad'],
  ])('other numbers, ids, times and addresses are left out: %j is %s', (message, slug) => {
    expect(toReasonSlug(message)).toBe(slug)
  })

  it('messages that differ in long numbers and ids have the same reason', () => {
    expect(toReasonSlug('order 83412: gone')).toBe('order')
    expect(toReasonSlug('order 83413: gone')).toBe('order')
    expect(toReasonSlug('order 8f14e45f-ceea-467f-a83d-0123456789ab: gone')).toBe('order')
    expect(toReasonSlug('token a1b2c3d4e5f6a7b8: refused')).toBe('token')
  })

  it.each([
    ['HTTP 503 from https://api.partner.example/v1/orders/17', 'http_503'],
    ['https://api.example.com/v1/orders/17 failed', 'api_example_com_v1_orders'],
    ['GET https://api.example.com/v1/orders/17: gone', 'get_api_example_com_v1_orders'],
    [`GET https://api.partner.example/v1/customers/17/invoices/archived: gone`, 'get'],
  ])('a URL is in the reason as a whole, or not at all: %j is %s', (message, slug) => {
    expect(toReasonSlug(message)).toBe(slug)
  })

  it('the reason of JSON has its codes', () => {
    expect(toReasonSlug('[{"code":"invalid_type","path":["items",2,"sku"]}]')).toBe('invalid_type_items_sku')
  })

  it('the reason has at most 64 characters', () => {
    expect(toReasonSlug('x'.repeat(1_000_000)).length).toBe(64)
    expect(toReasonSlug('- '.repeat(1_000_000))).toBe('unknown')
  })

  it.each(['a', '1', 'a@', '/a', '/1', '1.', '"', "'", 'a-', '1-', ':', 'a1', '0000-00-00T', '\u2003'])(
    'only the beginning of a long message is read: %j',
    (part) => {
      for (const end of ['', ':', ':1']) {
        const long = part.repeat(100_000) + end
        expect(toReasonSlug(long)).toBe(toReasonSlug(long.slice(0, 2_000)))
      }
    },
  )
})
