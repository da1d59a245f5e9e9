import type { JsonObject } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { describeFormats, type QueueServer } from './servers.ts'

const unknownId = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'
const long = (length: number): string => 'x'.repeat(length)
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value)

/** One fault, and the change that repairs it. */
type Fault = readonly [message: string, repair: JsonObject]

/**
 * Starts with a body that is wrong in every way and repairs one fault at a time. Each refusal must be the
 * next one, which proves the messages and their order. The last call succeeds.
 */
async function expectFaultsInOrder(
  api: QueueServer,
  method: string,
  body: JsonObject,
  faults: readonly Fault[],
): Promise<void> {
  let current = body
  for (const [message, repair] of faults) {
    expect(await api.callRefused(method, current)).toBe(message)
    current = { ...current, ...repair }
  }
  const answer = await api.send(method, current)
  expect([answer.status, answer.body.message]).toEqual([200, undefined])
}

const nameRungs = (queue: string): Fault[] => [
  ['queue name is invalid; queue name cannot be empty', { queue_name: ' \t ' }],
  ['queue name is invalid; queue name cannot be empty', { queue_name: 'a~b' }],
  ["queue name is invalid; 'a~b' cannot contain '~' character", { queue_name: 'nobody' }],
  ["queue does not exist; no such queue named 'nobody'", { queue_name: queue }],
]
const partitionRungs = (queue: string): Fault[] => [
  ...nameRungs(queue),
  ["partition is invalid; '-1' is not a valid partition", { partition: 1 }],
  ["partition is invalid; '1' is not a valid partition", { partition: 0 }],
]
const parseRungs: Fault[] = [
  [
    'request timeout is invalid; time: invalid duration "foo" - expected format: 900ms, 5m or 15m',
    { request_timeout: '10' },
  ],
  [
    'request timeout is invalid; time: missing unit in duration "10" - expected format: 900ms, 5m or 15m',
    { request_timeout: '10x' },
  ],
  [
    'request timeout is invalid; time: unknown unit "x" in duration "10x" - expected format: 900ms, 5m or 15m',
    { request_timeout: '' },
  ],
]
const required = "request timeout is required; '5m' is recommended, 15m is the maximum"

describeFormats('validation of the Queue API', (api) => {
  it('queue.produce reports errors in the order of the contract', async () => {
    const queue = await api.createQueue()
    const body = { queue_name: '', request_timeout: 'foo', items: [] }
    await expectFaultsInOrder(api, 'queue.produce', body, [
      ...nameRungs(queue),
      ...parseRungs,
      [required, { request_timeout: '15m' }],
      [
        "request timeout is invalid; maximum timeout is '15m' but '15m0s' was requested",
        { request_timeout: '10ms' },
      ],
      [
        "request timeout is invalid; minimum timeout is '10ms' but '10ms' was requested",
        { request_timeout: '14m59s' },
      ],
      ['items cannot be empty; at least one item is required', { items: times(1_001, {}) }],
      ['items is invalid; max_produce_batch_size is 1000 but received 1001', { items: times(1_000, {}) }],
    ])
  })

  it('queue.lease reports errors in the order of the contract', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'one')
    const body = { queue_name: '', request_timeout: 'foo', client_id: '', batch_size: -1 }
    await expectFaultsInOrder(api, 'queue.lease', body, [
      ...nameRungs(queue),
      ...parseRungs,
      ['invalid client id; cannot be empty', { client_id: 'worker' }],
      ['invalid batch size; must be greater than zero', { batch_size: 0 }],
      ['invalid batch size; must be greater than zero', { batch_size: 1_001 }],
      [
        'invalid batch size; max_lease_batch_size is 1000, but 1001 was requested',
        { batch_size: 1_000, request_timeout: '' },
      ],
      [required, { request_timeout: '15m1s' }],
      [
        "request timeout is invalid; maximum timeout is '15m' but '15m1s' was requested",
        { request_timeout: '9.5ms' },
      ],
      [
        "request timeout is invalid; minimum timeout is '10ms' but '9.5ms' was requested",
        { request_timeout: '15m' },
      ],
    ])
  })

  it.each([
    ['999ns', "minimum timeout is '10ms' but '999ns' was requested"],
    ['10ms', "minimum timeout is '10ms' but '10ms' was requested"],
    ['1.000005ms', "minimum timeout is '10ms' but '1.000005ms' was requested"],
    ['15m1ns', "maximum timeout is '15m' but '15m0.000000001s' was requested"],
    ['2000000h1ns', "maximum timeout is '15m' but '2000000h0m0.000000001s' was requested"],
    ['-1ns', "minimum timeout is '10ms' but '-1ns' was requested"],
  ])('a request timeout of %s is refused and shown to the nanosecond', async (request_timeout, why) => {
    const queue = await api.createQueue()
    const lease = { queue_name: queue, client_id: 'worker', batch_size: 1, request_timeout }
    const produce = { queue_name: queue, items: [{}], request_timeout }
    for (const [method, body] of [
      ['queue.lease', lease],
      ['queue.produce', produce],
    ] as const) {
      expect(await api.callRefused(method, body)).toBe(`request timeout is invalid; ${why}`)
    }
  })

  it('a request timeout that exceeds 10 ms by less than a microsecond is accepted', async () => {
    const queue = await api.createQueue()
    await api.call('queue.produce', { queue_name: queue, items: [{}], request_timeout: '10.000001ms' })
  })

  it('queue.complete reports errors in the order of the contract', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'one', 'two')
    const { items } = await api.lease(queue)
    const [waiting] = (await api.call('storage/items.list', { queue_name: queue })).items.slice(1)
    const ids = [items[0].id]
    const body = { queue_name: '', partition: -1, request_timeout: 'foo', ids: [] }
    await expectFaultsInOrder(api, 'queue.complete', body, [
      ...partitionRungs(queue),
      ...parseRungs,
      ['ids is invalid; list of ids cannot be empty', { ids: times(1_001, unknownId) }],
      [
        'ids is invalid; max_complete_batch_size is 1000 but received 1001',
        { ids: [...ids, 'short'], request_timeout: '15m1s' },
      ],
      [
        "request timeout is invalid; maximum timeout is '15m' but '15m1s' was requested",
        { request_timeout: '' },
      ],
      [required, { request_timeout: '15m' }],
      ["invalid storage id; 'short': Valid encoded KSUIDs are 27 characters", { ids: [...ids, long(27)] }],
      [
        `invalid storage id; '${long(27)}': Valid encoded KSUIDs are bounded by 000000000000000000000000000 and aWgEPTl1tmebfsQzFP4bxwgy80V`,
        { ids: [unknownId, 'short'] },
      ],
      [`invalid storage id; '${unknownId}' does not exist`, { ids: [...ids, waiting.id, 'short'] }],
      [`item(s) cannot be completed; '${waiting.id}' is not marked as leased`, { ids: [...ids, ...ids] }],
      [`invalid storage id; '${ids[0]}' does not exist`, { ids }],
    ])
  })

  it('queue.retry reports errors in the order of the contract', async () => {
    const queue = await api.createQueue()
    await api.produce(queue, 'one', 'two')
    const { items } = await api.lease(queue)
    const [waiting] = (await api.call('storage/items.list', { queue_name: queue })).items.slice(1)
    const item = { id: items[0].id }
    await expectFaultsInOrder(api, 'queue.retry', { queue_name: '', partition: -1, items: [] }, [
      ...partitionRungs(queue),
      ['items is invalid; list of items cannot be empty', { items: times(1_001, { id: unknownId }) }],
      [
        'items is invalid; max_complete_batch_size is 1000 but received 1001',
        { items: [item, { id: '' }, { id: unknownId }] },
      ],
      [
        "invalid storage id; '': Valid encoded KSUIDs are 27 characters",
        { items: [item, { id: unknownId }, { id: waiting.id }] },
      ],
      [`invalid storage id; '${unknownId}' does not exist`, { items: [item, { id: waiting.id }] }],
      [`item(s) cannot be retried; '${waiting.id}' is not marked as leased`, { items: [item] }],
    ])
    expect(await api.call('queue.stats', { queue_name: queue })).toMatchObject({
      logicalQueues: [{ partitions: [{ total: 2 }] }],
    })
  })

  it('queue.clear, queue.reload and queue.stats report errors in the order of the contract', async () => {
    const queue = await api.createQueue()
    await expectFaultsInOrder(api, 'queue.clear', { queue_name: '' }, [
      ...nameRungs(queue),
      ["invalid clear request; one of 'queue', 'scheduled' must be true", { queue: true }],
    ])
    await expectFaultsInOrder(api, 'queue.reload', { queue_name: '' }, nameRungs(queue))
    await expectFaultsInOrder(api, 'queue.stats', { queue_name: '' }, nameRungs(queue))
    await expectFaultsInOrder(api, 'queues.info', { queue_name: '' }, nameRungs(queue))
  })

  it('queues.create reports errors in the order of the contract', async () => {
    const existing = await api.createQueue()
    const dead = await api.createQueue()
    const chained = await api.createQueue({ dead_queue: dead })
    const name = `${existing}-new`
    const body = {
      queue_name: long(513),
      lease_timeout: '1000000000000000',
      expire_timeout: '1000000000000000',
      namespace: long(257),
      dead_queue: long(501),
      reference: long(2_001),
      max_attempts: 65_537,
    }
    await expectFaultsInOrder(api, 'queues.create', body, [
      ["queue name is invalid; cannot be greater than '512' characters", { queue_name: '  ' }],
      ['queue name is invalid; queue name cannot be empty', { queue_name: 'a b~' }],
      ["queue name is invalid; 'a b~' cannot contain whitespace", { queue_name: 'a~b' }],
      ["queue name is invalid; 'a~b' cannot contain '~' character", { queue_name: existing }],
      ["lease timeout is invalid; cannot be greater than '15' characters", { lease_timeout: 'foo' }],
      ["expire timeout is invalid; cannot be greater than '15' characters", { expire_timeout: '10' }],
      [
        'expire timeout is invalid; time: missing unit in duration "10" - expected format: 60m, 2h or 24h',
        { expire_timeout: '' },
      ],
      [
        'lease timeout is invalid; time: invalid duration "foo" - expected format: 8m, 15m or 1h',
        { lease_timeout: '' },
      ],
      ["namespace name is invalid; cannot be greater than '256' characters", { namespace: 'a b~:' }],
      ["namespace name is invalid; 'a b~:' cannot contain whitespace", { namespace: 'a~:' }],
      ["namespace name is invalid; 'a~:' cannot contain '~' character", { namespace: 'a:' }],
      ["namespace name is invalid; 'a:' cannot contain ':' character", { namespace: '_system' }],
      [`invalid queue; '${existing}' already exists`, { queue_name: name }],
      ["dead queue is invalid; cannot be greater than '500' characters", { dead_queue: 'd q~' }],
      ["dead queue is invalid; 'd q~' cannot contain whitespace", { dead_queue: 'dq~' }],
      ["dead queue is invalid; 'dq~' cannot contain '~' character", { dead_queue: name }],
      ['dead_queue cannot reference itself', { dead_queue: 'nobody' }],
      ["dead_queue does not exist; 'nobody' was not found, create it first", { dead_queue: chained }],
      [
        `dead_queue is invalid; '${chained}' already has its own dead_queue configured; ` +
          'a dead queue cannot have its own dead_queue',
        { dead_queue: dead },
      ],
      ["reference field is invalid; cannot be greater than '2000' characters", { reference: long(2_000) }],
      ['max attempts is invalid; cannot be greater than 65536', { max_attempts: -1 }],
      ['max attempts is invalid; cannot be negative number', { max_attempts: 65_536 }],
      ['partitions is invalid; cannot be less than 1', { requested_partitions: 2 }],
      ['lease timeout is invalid; cannot be empty', { lease_timeout: '1h' }],
      ['expire timeout is invalid; cannot be empty', { expire_timeout: '59m59s' }],
      [
        'lease timeout is too long; 1h0m0s cannot be greater than the expire timeout 59m59s',
        { expire_timeout: '60m' },
      ],
    ])
  })

  it.each([
    ['malformed', 'x'],
    ['unknown', unknownId],
  ])('queue.complete and queue.retry check the partition before a %s id', async (_, id) => {
    const queue = await api.createQueue()
    const target = { queue_name: queue, partition: 1 }
    const refusal = "partition is invalid; '1' is not a valid partition"
    const complete = { ...target, request_timeout: '1m', ids: [id] }
    expect(await api.callRefused('queue.complete', complete)).toBe(refusal)
    expect(await api.callRefused('queue.retry', { ...target, items: [{ id }] })).toBe(refusal)
  })

  it('a payload that is not base64, or that is given twice, is refused with 455', async () => {
    const queue = await api.createQueue()
    const target = { queue_name: queue, request_timeout: '1m' }
    const both = { bytes: 'aGk=', utf8: 'hi' }
    expect(await api.callRefused('queue.produce', { ...target, items: [{}, both] }, 455)).toBe(
      'an item has both "bytes" and "utf8"; send only one of them',
    )
    await api.call('queue.produce', { ...target, items: [{ bytes: '', utf8: 'text' }] })
    expect((await api.call('storage/items.list', { queue_name: queue })).items).toHaveLength(1)
  })

  it('queues.create refuses an unknown namespace with 453', async () => {
    const body = { queue_name: 'somewhere', lease_timeout: '1m', expire_timeout: '1h', namespace: 'payments' }
    expect(await api.callRefused('queues.create', body, 453)).toBe(
      "namespace does not exist; 'payments' was not found",
    )
  })

  it('queues.update reports errors in the order of the contract', async () => {
    const queue = await api.createQueue()
    const dead = await api.createQueue()
    const chained = await api.createQueue({ dead_queue: dead })
    const body = {
      queue_name: 'a b',
      lease_timeout: '1000000000000000',
      expire_timeout: 'x',
      namespace: 'a:',
      dead_queue: 'd q',
      reference: long(2_001),
      max_attempts: 65_537,
    }
    await expectFaultsInOrder(api, 'queues.update', body, [
      ["queue name is invalid; 'a b' cannot contain whitespace", { queue_name: 'nobody' }],
      ["lease timeout is invalid; cannot be greater than '15' characters", { lease_timeout: '25h' }],
      [
        'expire timeout is invalid; time: invalid duration "x" - expected format: 60m, 2h or 24h',
        { expire_timeout: '' },
      ],
      ["namespace name is invalid; 'a:' cannot contain ':' character", { namespace: '' }],
      ["queue does not exist; no such queue named 'nobody'", { queue_name: queue }],
      ["dead queue is invalid; 'd q' cannot contain whitespace", { dead_queue: queue }],
      ['dead_queue cannot reference itself', { dead_queue: chained }],
      [
        `dead_queue is invalid; '${chained}' already has its own dead_queue configured; ` +
          'a dead queue cannot have its own dead_queue',
        { dead_queue: dead },
      ],
      ["reference field is invalid; cannot be greater than '2000' characters", { reference: '' }],
      ['max attempts is invalid; cannot be greater than 65536', { max_attempts: 3 }],
      [
        'lease timeout is too long; 25h0m0s cannot be greater than the expire timeout 24h0m0s',
        { lease_timeout: '24h' },
      ],
    ])
  })

  it('queues.delete reports errors in the order of the contract', async () => {
    const queue = await api.createQueue()
    await expectFaultsInOrder(api, 'queues.delete', { queue_name: long(513) }, [
      ["queue name is invalid; cannot be greater than '512' characters", { queue_name: '' }],
      ['queue name is invalid; queue name cannot be empty', { queue_name: 'a b' }],
      ["queue name is invalid; 'a b' cannot contain whitespace", { queue_name: 'a~b' }],
      ["queue name is invalid; 'a~b' cannot contain '~' character", { queue_name: 'nobody' }],
      ["queue does not exist; no such queue named 'nobody'", { queue_name: queue }],
    ])
  })

  it('queues.list reports errors in the order of the contract', async () => {
    await expectFaultsInOrder(api, 'queues.list', { limit: -1, pivot: 'a~b' }, [
      ['limit is invalid; limit cannot be negative', { limit: 65_537 }],
      ['limit is invalid; cannot be greater than 65536', { limit: 65_536 }],
      ["pivot is invalid; 'a~b' cannot contain '~' character", { pivot: '' }],
    ])
  })

  it.each(['storage/items.list', 'storage/scheduled.list'])(
    '%s reports errors in the order of the contract',
    async (method) => {
      const queue = await api.createQueue()
      await expectFaultsInOrder(api, method, { queue_name: '', partition: -1, limit: -1, pivot: 'short' }, [
        ...partitionRungs(queue),
        ['limit is invalid; limit cannot be negative', { limit: 65_537 }],
        ['limit is invalid; cannot be greater than 65536', { limit: 1 }],
        ["invalid storage id; 'short': Valid encoded KSUIDs are 27 characters", { pivot: unknownId }],
      ])
    },
  )

  it('storage/items.import and storage/items.delete report errors in the order of the contract', async () => {
    const queue = await api.createQueue()
    const body = { queue_name: '', partition: -1 }
    await expectFaultsInOrder(api, 'storage/items.import', { ...body, items: [] }, [
      ...partitionRungs(queue),
      ['items is invalid; cannot be empty', { items: [{}] }],
    ])
    await expectFaultsInOrder(api, 'storage/items.delete', { ...body, ids: [] }, [
      ...partitionRungs(queue),
      ['ids is invalid; cannot be empty', { ids: [unknownId, 'short'] }],
      ["invalid storage id; 'short': Valid encoded KSUIDs are 27 characters", { ids: [unknownId] }],
    ])
  })

  it('texts with a NUL character are refused', async () => {
    const queue = await api.createQueue()
    const nul = 'a\0b'
    expect(await api.callRefused('queues.info', { queue_name: nul })).toMatch('queue does not exist')
    expect(await api.callRefused('queue.stats', { queue_name: nul })).toMatch('queue does not exist')
    expect(await api.callRefused('queues.create', { queue_name: nul })).toMatch(
      'cannot contain a NUL character',
    )
    expect(await api.callRefused('queues.list', { pivot: nul })).toMatch('cannot contain a NUL character')
    for (const field of ['kind', 'encoding', 'reference']) {
      const body = { queue_name: queue, request_timeout: '1m', items: [{ [field]: nul }] }
      expect(await api.callRefused('queue.produce', body)).toBe(
        `${field} is invalid; cannot contain a NUL character`,
      )
    }
    const lease = { queue_name: queue, request_timeout: '1m', batch_size: 1, client_id: nul }
    expect(await api.callRefused('queue.lease', lease)).toMatch('cannot contain a NUL character')
    const imported = { queue_name: queue, items: [{ source_id: nul }] }
    expect(await api.callRefused('storage/items.import', imported)).toMatch('cannot contain a NUL character')
  })
})
