import { describe, expect, it } from 'vitest'
import { aFailure } from '../../../test/make.ts'
import { toCause } from '../dead-letters/cause.ts'
import type { Failure } from '../items/item.ts'
import { GroupIndex } from './group-index.ts'

type Told = Partial<Pick<Failure, 'errorClass' | 'message' | 'stack'>>

/** The groups of failures that arrive in this order, as a store forms them. */
function group(failures: readonly Told[]): number[] {
  const index = new GroupIndex()
  const roots = new Map<number, number>()
  let next = 1
  const ids = failures.map((told) => {
    const failure = aFailure({ errorCode: 'attempts', errorClass: '', stack: '', ...told })
    const cause = toCause(failure, { name: 'orders' })
    const found = index.find(cause.fingerprint)
    if (found !== undefined) return found
    const match = index.match(cause)
    if (match.kind === 'widen') {
      index.widen(cause, match)
      for (const id of match.merged) roots.set(id, match.id)
    }
    if (match.kind !== 'create') return match.id
    const id = next++
    index.add({ ...cause, id })
    return id
  })
  const findRoot = (id: number): number => {
    const root = roots.get(id)
    return root === undefined ? id : findRoot(root)
  }
  return ids.map(findRoot)
}

const texts = (messages: readonly string[]): Told[] => messages.map((message) => ({ message }))
const countGroups = (failures: readonly Told[]): number => new Set(group(failures)).size
const at = (frames: readonly string[]): string => frames.map((frame) => `\tat ${frame}`).join('\n')

describe('values do not separate causes', () => {
  it.each([
    [
      'ids of orders with a year',
      ['Order ORD-2024-00017 not found', 'Order ORD-2025-91234 not found', 'Order INV-000421 not found'],
    ],
    [
      'numbers and UUIDs in one place',
      [
        'no shipment 4711',
        'no shipment 8f14e45f-ceea-467f-a83d-0123456789ab',
        'no shipment 01HZX3K8Q2M5N7P9R1T3V5W7Y9',
      ],
    ],
    [
      'ids with a prefix',
      ['charge ch_3MmlLrLkdIwHu7ix0snN0B15 failed', 'charge ch_1PgafmB7WZ01zgkWXYabcdEF failed'],
    ],
    ['ids of objects', ['no cart 65f9988ac44410f84d681b98', 'no cart 65ff680aabc28286a8234e01']],
    [
      'pods',
      ['lost heartbeat of pod checkout-7d9f8b6c5d-x2x4z', 'lost heartbeat of pod checkout-6b7c9d8f4f-9kqpm'],
    ],
    [
      'IPv4 and IPv6 addresses',
      ['refused by 10.0.3.7:9092', 'refused by [fe80::a1]:9092', 'refused by 192.168.1.20:9092'],
    ],
    [
      'host names',
      [
        'lookup kafka-2.prod.internal failed',
        'lookup kafka-11.prod.internal failed',
        'lookup broker.eu.example.com failed',
      ],
    ],
    [
      'durations with different units',
      [
        'timed out after 30s',
        'timed out after 1500ms',
        'timed out after 2.5 seconds',
        'timed out after 3 minutes',
      ],
    ],
    [
      'sizes with different units',
      ['body of 512 KB is too large', 'body of 1.2 MB is too large', 'body of 4096 bytes is too large'],
    ],
    [
      'dates and times',
      [
        'window closed at 2026-11-15T12:00:00.123Z',
        'window closed at 2026-01-02 03:04',
        'window closed at 15.11.2026 12:30',
      ],
    ],
    [
      'e-mail addresses',
      ['mailbox jane.doe+x@mail.example.org is full', 'mailbox bob@example.co.uk is full'],
    ],
    [
      'paths of files',
      [
        'cannot open /srv/in/2024/a.csv',
        'cannot open /srv/in/weekly/report.csv',
        'cannot open C:\\data\\in\\b.csv',
      ],
    ],
    ['names of files', ['skipped invoice-april.pdf', 'skipped summary.pdf', 'skipped letter-to-bank.pdf']],
    [
      'quoted values',
      [
        "Customer 'Aiko Tanaka' has no address",
        "Customer 'Siobhán O'Brien' has no address",
        "Customer 'x' has no address",
      ],
    ],
    ['typographic quotes', ['Kunde „Anna Müller“ ist gesperrt', 'Kunde „Jörg Weiß“ ist gesperrt']],
    [
      'query strings',
      [
        'GET https://api.example.com/v1/rates failed',
        'GET https://api.example.com/v1/rates?from=EUR&to=USD failed',
      ],
    ],
    [
      'versions of products',
      ['upstream envoy/1.28.0 closed', 'upstream envoy/1.29.1 closed', 'upstream envoy closed'],
    ],
    [
      'lists of different lengths',
      [
        'no broker of 10.0.0.1:9092 answered',
        'no broker of 10.0.0.1:9092, 10.0.0.2:9092, 10.0.0.3:9092 answered',
      ],
    ],
    ['thread names', ['pool is full [http-nio-8080-exec-12]', 'pool is full [http-nio-8080-exec-7]']],
    ['hexadecimal addresses', ['fault at 0x7ffd1a2b', 'fault at 0x00401f3c']],
    [
      'values of JSON',
      ['bad event {"id":"a-1","name":"Anna"}', 'bad event {"id":"b-22","name":"Bob Miller"}'],
    ],
    [
      'values in logfmt',
      ['write failed tenant=acme region=eu-west-1', 'write failed tenant=globex region=us-east-2'],
    ],
    ['Cyrillic messages with numbers', ['Заказ 4711 не найден', 'Заказ 99 не найден']],
    ['numbers of things', ['query returned 5 rows', 'query returned 12345 rows', 'query returned 71 rows']],
    ['Japanese messages with numbers', ['注文 4711 が見つかりません', '注文 99 が見つかりません']],
  ])('%s', (_, messages) => {
    expect(countGroups(texts(messages))).toBe(1)
  })
})

describe('codes and names of the program separate causes', () => {
  it.each([
    ['HTTP status before a colon', ['HTTP 503: upstream', 'HTTP 404: upstream']],
    [
      'HTTP status without a colon',
      ['HTTP 503 from partner', 'HTTP 429 from partner', 'HTTP/1.1 500 from partner'],
    ],
    [
      'HTTP status with its phrase',
      ['got 502 Bad Gateway', 'got 504 Gateway Timeout', 'got 503 Service Unavailable'],
    ],
    [
      'HTTP status in a sentence',
      ['Request failed with status code 429', 'Request failed with status code 500'],
    ],
    ['HTTP status as a property', ['call failed: status=401', 'call failed: status=403']],
    [
      'HTTP status after a verb',
      ['partner responded with 503', 'partner responded with 404', 'partner returned 401'],
    ],
    ['HTTP status in JSON', ['{"status":409,"title":"Conflict"}', '{"status":412,"title":"Conflict"}']],
    [
      'names of errno',
      [
        'connect ECONNREFUSED 10.0.0.1:80',
        'connect ETIMEDOUT 10.0.0.1:80',
        'connect EHOSTUNREACH 10.0.0.1:80',
      ],
    ],
    ['numbers of errno', ['[Errno 111] Connection failed', '[Errno 113] Connection failed']],
    [
      'SQLSTATE',
      [
        'could not commit (SQLSTATE 40001)',
        'could not commit (SQLSTATE 40P01)',
        'could not commit (SQLSTATE 57014)',
      ],
    ],
    ['SQLSTATE in brackets', ['SQLSTATE[23000]: failed', 'SQLSTATE[42S02]: failed']],
    [
      'gRPC status of Go',
      ['rpc error: code = Unavailable desc = x', 'rpc error: code = DeadlineExceeded desc = x'],
    ],
    ['gRPC status of Node', ['14 UNAVAILABLE: no connection', '4 DEADLINE_EXCEEDED: no connection']],
    ['codes of Oracle', ['ORA-01017: logon denied', 'ORA-12541: logon denied']],
    ['codes of MongoDB', ['E11000 duplicate', 'E11600 duplicate']],
    ['codes of MySQL', ['Error 1062 (23000): failed', 'Error 1213 (40001): failed']],
    ['codes of SQL Server', ['Error Number:1205, State:45', 'Error Number:2627, State:45']],
    ['codes of Azure', ['AADSTS50076: sign-in failed', 'AADSTS700016: sign-in failed']],
    ['codes of SMTP', ['550 5.1.1 rejected', '552 5.2.2 rejected']],
    ['exit codes', ['worker ended with exit code 137', 'worker ended with exit code 1']],
    ['results of Windows', ['load failed, HRESULT 0x80070005', 'load failed, HRESULT 0x8007000E']],
    ['codes without digits', ['{"error":{"code":"card_declined"}}', '{"error":{"code":"expired_card"}}']],
    ['constants of the program', ['send: ERR_SOCKET_TIMEOUT', 'send: ERR_SOCKET_CLOSED']],
    ['fields in quotes', ['Unrecognized field "giftNote"', 'Unrecognized field "discountCode"']],
    [
      'properties',
      ["Cannot read properties of null (reading 'id')", "Cannot read properties of null (reading 'name')"],
    ],
    [
      'columns',
      ['null value in column "weight" violates not-null', 'null value in column "height" violates not-null'],
    ],
    [
      'constraints',
      [
        'violates unique constraint "uk_a"',
        'violates unique constraint "uk_b"',
        'violates check constraint "positive_amount"',
      ],
    ],
    [
      'keys of MySQL',
      ["Duplicate entry 'x-1' for key 'orders.uk_ref'", "Duplicate entry 'x-2' for key 'orders.uk_mail'"],
    ],
    [
      'endpoints',
      [
        'POST https://api.example.com/v1/orders/17 failed',
        'POST https://api.example.com/v1/refunds/17 failed',
      ],
    ],
    ['paths of requests', ['GET /v1/orders/17 timed out', 'GET /v1/invoices/17 timed out']],
    ['the operation', ['reserve stock for A-17: timeout', 'release stock for A-17: timeout']],
    [
      'the operation in the middle',
      ['failed to reserve stock for A-17: timeout', 'failed to release stock for A-17: timeout'],
    ],
    ['the last words', ['payment refused: insufficient funds', 'payment refused: card expired']],
    ['type of a validation problem', ['value [type=missing, input=1]', 'value [type=int_parsing, input=1]']],
  ])('%s', (_, messages) => {
    expect(countGroups(texts(messages))).toBe(messages.length)
  })

  it('the same code with other data is one cause', () => {
    const messages = [
      'ORA-00001: unique constraint (SHOP.UK_A) violated for 17',
      'ORA-00001: unique constraint (SHOP.UK_A) violated for 4711',
    ]
    expect(countGroups(texts(messages))).toBe(1)
  })
})

describe('the template miner learns values that no mask knows', () => {
  it.each([
    [
      'products',
      [
        'unknown SKU teal-vase-medium',
        'unknown SKU red-towel',
        'unknown SKU sage-mug-mini',
        'unknown SKU navy-candle-set',
        'unknown SKU plum-teapot',
      ],
    ],
    [
      'names of people',
      [
        'no address for customer Anna Berg',
        'no address for customer Luis van der Meer',
        'no address for customer Ingrid Olsen',
        'no address for customer Bo Chen',
      ],
    ],
    [
      'codes of vouchers',
      [
        'Voucher SPRING expired',
        'Voucher LOYAL-VIP expired',
        'Voucher WELCOME12 expired',
        'Voucher FRIENDS expired',
      ],
    ],
    [
      'plain words after many of them',
      [
        'login of user alice refused',
        'login of user bob refused',
        'login of user carol refused',
        'login of user dave refused',
        'login of user erin refused',
        'login of user frank refused',
      ],
    ],
  ])('%s', (_, messages) => {
    expect(countGroups(texts(messages))).toBe(1)
  })

  it('a few different words in one place stay different causes', () => {
    expect(countGroups(texts(['disk is full', 'queue is full', 'cache is full']))).toBe(3)
  })

  it('messages that start with different words are never merged', () => {
    const verbs = ['create', 'update', 'delete', 'fetch', 'merge', 'close', 'open', 'archive']
    expect(countGroups(texts(verbs.map((verb) => `${verb} of the account failed`)))).toBe(verbs.length)
  })

  it('causes with different error classes are never merged', () => {
    const failures = ['A', 'B', 'C', 'D', 'E', 'F'].map((errorClass) => ({ errorClass, message: 'failed' }))
    expect(countGroups(failures)).toBe(failures.length)
  })
})

describe('the stack decides, where there is one', () => {
  const thrown = (message: string, frames: readonly string[], rest = ''): Told => ({
    errorClass: 'com.acme.ShopException',
    message,
    stack: `com.acme.ShopException: ${message}\n${at(frames)}${rest}`,
  })
  const load = 'com.acme.Store.load(Store.java:12)'
  const run = 'com.acme.Job.run(Job.java:40)'
  const spring = 'org.springframework.retry.support.RetryTemplate.execute(RetryTemplate.java:225)'

  it('equal messages that different functions throw are different causes', () => {
    const failures = [
      thrown('is null', [load, run]),
      thrown('is null', ['com.acme.Price.find(Price.java:3)', run]),
    ]
    expect(countGroups(failures)).toBe(2)
  })

  it('other line numbers, library frames and one more frame are the same cause', () => {
    const failures = [
      thrown('is null', [load, run]),
      thrown('is null', ['com.acme.Store.load(Store.java:19)', spring, 'com.acme.Job.run(Job.java:44)']),
      thrown('is null', [load, 'com.acme.Retry.once(Retry.java:3)', run]),
    ]
    expect(countGroups(failures)).toBe(1)
  })

  it('messages with free text are one cause if they come from one place', () => {
    const failures = [
      'Anna has no address',
      'Bob Miller has no address at all',
      'the company has no address',
    ].map((message) => thrown(message, [load, run]))
    expect(countGroups(failures)).toBe(1)
  })

  it('different messages from one place are different causes', () => {
    const failures = ['order is already paid', 'stock of the item ran out'].map((message) =>
      thrown(message, [load, run]),
    )
    expect(countGroups(failures)).toBe(2)
  })

  it('five messages without a common word from one place are free text', () => {
    const names = ['Anna', 'berg and valley', 'Chen Li', 'Doe John Jr', 'eve', 'Frank']
    expect(countGroups(names.map((message) => thrown(message, [load, run])))).toBe(1)
  })

  it('different root causes are different causes, although all other text is equal', () => {
    const failures = [
      thrown('cannot open', [load], '\nCaused by: java.sql.SQLException: pool is empty\n\t... 3 more'),
      thrown('cannot open', [load], '\nCaused by: java.net.ConnectException: refused\n\t... 3 more'),
      thrown(
        'cannot open',
        [load],
        '\nCaused by: java.sql.SQLException: password authentication failed\n\t... 3 more',
      ),
    ]
    expect(countGroups(failures)).toBe(3)
  })

  it('codes of the root cause separate', () => {
    const failures = [409, 503].map((status) =>
      thrown(
        'cannot sync',
        [load],
        `\nCaused by: com.acme.HttpException: status code ${status} for a call\n\t... 3 more`,
      ),
    )
    expect(countGroups(failures)).toBe(2)
  })

  it('a stack that is cut before its root cause joins the cause with the same frames', () => {
    const whole = thrown(
      'cannot open',
      [load, run],
      '\nCaused by: java.sql.SQLException: pool is empty\n\t... 3 more',
    )
    const cut = { ...whole, stack: `${thrown('cannot open', [load, run]).stack}\n\tat org.springfra` }
    expect(countGroups([whole, cut])).toBe(1)
    expect(countGroups([cut, whole])).toBe(1)
  })

  it('a group that began without a stack takes the frames of the first stack, and no others', () => {
    const failures = [
      { errorClass: 'com.acme.ShopException', message: 'is null', stack: '' },
      thrown('is null', [load, run]),
      thrown('is null', ['com.acme.Price.find(Price.java:3)', run]),
    ]
    expect(group(failures)).toEqual([1, 1, 2])
  })

  it('codes separate causes with equal stacks', () => {
    const failures = ['status code 429', 'status code 503'].map((text) =>
      thrown(`Request failed with ${text}`, [load]),
    )
    expect(countGroups(failures)).toBe(2)
  })
})
