import { describe, expect, it } from 'vitest'
import type { Envelope } from '../../../client/src/index.ts'
import { type Body, createEnvelope, describeLettersServers, type LettersServer } from './servers.ts'
import { declareDead, lease } from './worker.ts'

const at = (minute: number) => `2026-03-01T00:${String(minute).padStart(2, '0')}:00.000000Z`

/** Creates ten envelopes that died one per minute and differ in every condition. */
function createVariousEnvelopes(queue: string): Envelope[] {
  return Array.from({ length: 10 }, (_, index) => ({
    ...createEnvelope(queue),
    original_value: {
      order: { id: index, lines: [{ 'unit price': index * 10 }] },
      note: index === 4 ? null : 'x',
    },
    original_key: `key-${index}`,
    headers: { tenant: index % 2 === 0 ? 'even' : 'odd', ...(index === 3 && { rare: 'a=b' }) },
    error_code: index < 3 ? 'timeout' : 'refused',
    error_details: {
      exception_class: index < 5 ? 'TimeoutError' : 'net.Refused',
      message: index < 5 ? `upstream ${index}: no ANSWER in time` : 'connection refused: 100%_sure',
    },
    first_failure_at: at(index),
    last_failure_at: at(index),
    dead_lettered_at: at(index),
  }))
}

async function createVariousLetters(api: LettersServer) {
  const { queue, dead } = await api.createQueues()
  const ids = await api.capture(dead, ...createVariousEnvelopes(queue))
  const numbers = async (query: string): Promise<number[]> => {
    const { status, body } = await api.get(`/api/v1/letters?queue=${dead}&order=asc&${query}`)
    if (status !== 200) throw new Error(JSON.stringify(body))
    return body.letters.map(({ id }: { id: string }) => ids.indexOf(id))
  }
  return { queue, dead, ids, numbers }
}

describeLettersServers('the list of letters', (api) => {
  it('each condition of a filter, alone or combined, finds the letters that match', async () => {
    const { numbers, queue, dead } = await createVariousLetters(api)
    const all = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    const text = encodeURIComponent
    const cases: [query: string, found: number[]][] = [
      ['', all],
      ['status=PENDING', all],
      ['status=DEAD', []],
      ['status=DEAD&status=PENDING', all],
      ['error_code=timeout', [0, 1, 2]],
      ['error_code=time', []],
      ['error_class=net.Refused', [5, 6, 7, 8, 9]],
      [`origin=${queue}`, all],
      ['origin=elsewhere', []],
      ['slug=connection_refused', [5, 6, 7, 8, 9]],
      ['message=no+answer', [0, 1, 2, 3, 4]],
      [`message=${text('100%_sure')}`, [5, 6, 7, 8, 9]],
      [`message=${text('100x_sure')}`, []],
      ['key_text=key-7', [7]],
      [`key_base64=${btoa('key-7')}`, [7]],
      ['header=tenant', all],
      ['header=rare', [3]],
      [`header=${text('rare=a=b')}`, [3]],
      ['header=tenant%3Deven', [0, 2, 4, 6, 8]],
      [`json=${text('$.order.id=4')}`, [4]],
      [`json=${text('$.order.lines[0]["unit price"]=70')}`, [7]],
      [`json=${text('$.order.id=0.4e1')}`, [4]],
      [`json=${text('$.order.id=4.00000000000000000001')}`, []],
      [`json=${text('$.note=null')}`, [4]],
      [`json=${text('$.note=x')}`, [0, 1, 2, 3, 5, 6, 7, 8, 9]],
      [`json=${text('$.order.id="4"')}`, []],
      [`json=${text('$.missing=null')}`, []],
      [`dead_lettered_from=${at(8)}`, [8, 9]],
      [`dead_lettered_until=${at(1)}`, [0, 1]],
      [`dead_lettered_from=${at(2)}&dead_lettered_until=${at(3)}`, [2, 3]],
      [`last_failed_from=${at(9)}`, [9]],
      ['updated_from=2026-02-01T00:00:00Z', all],
      ['updated_until=2026-02-01T00:00:00Z', []],
      ['retry_count_max=0', all],
      ['retry_count_min=1', []],
      ['error_code=timeout&error_code=refused&error_class=TimeoutError&header=tenant%3Dodd', [1, 3]],
      ['letter_class=standard', all],
      ['letter_class=financial', []],
      [`error_code=refused&message=answer&dead_lettered_from=${at(4)}`, [4]],
    ]
    for (const [query, found] of cases) expect([query, await numbers(query)]).toEqual([query, found])
    expect(dead).toBeTypeOf('string')
  })

  it('an empty error_class finds letters without one, and a letter has kind, encoding and reference of its item', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(
      dead,
      createEnvelope(queue, { error_details: { message: 'no class' } }),
      createEnvelope(queue),
    )
    const { body } = await api.get(`/api/v1/letters?queue=${dead}&error_class=`)
    expect(body.letters).toMatchObject([{ failure: { message: 'no class', error_class: '' }, kind: '' }])
    const facts = { kind: 'order', encoding: 'json', reference: 'shop 7' }
    await api.post(`/api/v1/queues/${queue}/items`, { items: [{ payload: { text: 'x' }, ...facts }] })
    await declareDead(api, queue, await lease(api, queue), 'broken')
    const died = (await api.get(`/api/v1/letters?queue=${dead}&error_class=WorkerError`)).body.letters
    expect(died).toMatchObject([facts])
    expect((await api.get(`/api/v1/letters/${died[0].id}`)).body).toMatchObject(facts)
  })

  it('a long error class is found by the value that is shown', async () => {
    const { queue, dead } = await api.createQueues()
    for (const long of [`${'c'.repeat(400)}1`, `${'c'.repeat(400)}2`, '😀'.repeat(250), 'd'.repeat(501)]) {
      await api.capture(dead, createEnvelope(queue, { error_details: { exception_class: long } }))
      const shown = long.slice(0, 500)
      const found = await api.get(`/api/v1/letters?queue=${dead}&error_class=${encodeURIComponent(shown)}`)
      expect(found.body).toMatchObject({ total: 1, letters: [{ failure: { error_class: shown } }] })
    }
  })

  it('the pages of a list contain each letter once, in both directions', async () => {
    const { dead, ids } = await createVariousLetters(api)
    for (const [order, expected] of [
      ['asc', ids],
      ['desc', ids.toReversed()],
    ] as const) {
      const seen: string[] = []
      let cursor = ''
      do {
        const { body } = await api.get(`/api/v1/letters?queue=${dead}&order=${order}&limit=3${cursor}`)
        expect(body.total).toBe(10)
        expect(body.letters.length).toBeLessThanOrEqual(3)
        seen.push(...body.letters.map(({ id }: Body) => id))
        cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
      } while (cursor !== '')
      expect(seen).toEqual(expected)
    }
  })

  it('order_by=updated_at sorts by the last change', async () => {
    const { dead, ids } = await createVariousLetters(api)
    await api.post('/api/v1/letters/discard', { ids: [ids[5]], reason: 'not needed' })
    const { body } = await api.get(`/api/v1/letters?queue=${dead}&order_by=updated_at&limit=1`)
    expect(body.letters).toMatchObject([{ id: ids[5], status: 'DISCARDED', discard_reason: 'not needed' }])
  })

  it('the total is exact if the counts contain all conditions, and null otherwise', async () => {
    const { dead } = await createVariousLetters(api)
    const total = async (query: string) =>
      (await api.get(`/api/v1/letters?queue=${dead}&limit=1&${query}`)).body.total
    expect(await total('')).toBe(10)
    expect(await total('status=PENDING&error_code=timeout')).toBe(3)
    expect(await total('letter_class=financial')).toBe(0)
    expect(await total('message=answer')).toBeNull()
    expect(await total('header=rare')).toBeNull()
  })

  it('the class condition uses the current class of each queue', async () => {
    const { queue, dead } = await api.createQueues({ letter_class: 'gold' })
    const { body } = await api.get(`/api/v1/queues/${dead}`)
    const [id] = await api.capture(dead, createEnvelope(queue))
    const ofClass = await api.get(`/api/v1/letters?letter_class=${body.policy.letter_class}`)
    expect(ofClass.body).toMatchObject({ letters: [{ id }], total: 1 })
    expect(
      (await api.get(`/api/v1/letters?letter_class=${body.policy.letter_class}&queue=${queue}`)).body.total,
    ).toBe(0)
  })

  it('a search that stops early continues with next_cursor until it has examined all letters', async () => {
    const { queue, dead } = await api.createQueues()
    for (let batch = 0; batch < 5; batch++) {
      const letters = Array.from({ length: 1_000 }, (_, index) =>
        createEnvelope(queue, { original_value: { n: batch * 1_000 + index } }),
      )
      await api.capture(dead, ...letters)
    }
    const found: unknown[] = []
    let examined = 0
    let cursor = ''
    do {
      const json = encodeURIComponent('$.n=1234')
      const { body } = await api.get(`/api/v1/letters?queue=${dead}&json=${json}&limit=2${cursor}`)
      found.push(...body.letters)
      examined += body.examined_count
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    } while (cursor !== '')
    expect(found).toMatchObject([{ payload: { text: '{"n":1234}', is_truncated: false } }])
    expect(examined).toBeGreaterThanOrEqual(5_000)
  })

  describe('validation', () => {
    it.each([
      ['an unknown parameter', 'colour=red', 'query.colour is not known'],
      ['an unknown status', 'status=OPEN', 'query.status must be one of PENDING'],
      ['one unknown status of several', 'status=DEAD&status=pending', 'query.status'],
      ['an invalid time', 'dead_lettered_from=yesterday', 'query.dead_lettered_from is not an RFC 3339 time'],
      [
        'a day that does not exist',
        'dead_lettered_from=2026-02-30T00:00:00Z',
        'query.dead_lettered_from is not an RFC 3339 time',
      ],
      ['a date without a time', 'updated_until=2026-01-01', 'query.updated_until'],
      ['a month that does not exist', 'last_failed_from=2026-13-01T00:00:00Z', 'query.last_failed_from'],
      [
        'a range that ends before it starts',
        `dead_lettered_from=${at(2)}&dead_lettered_until=${at(1)}`,
        'query.dead_lettered_from is after',
      ],
      [
        'an invalid JSON path',
        `json=${encodeURIComponent('$.a[*]=1')}`,
        'query.json cannot be read at character 5',
      ],
      ['a JSON path without a value', `json=${encodeURIComponent('$.a')}`, 'query.json has no value'],
      ['a JSON path without $', 'json=a%3D1', 'query.json cannot be read at character 1'],
      ['two keys', 'key_text=a&key_base64=YQ', 'query.key_text and key_base64 are both given'],
      ['a key that is not base64', 'key_base64=***', 'query.key_base64 is not base64'],
      ['an unknown order', 'order_by=size', 'query.order_by'],
      ['a limit above the maximum', 'limit=501', 'query.limit'],
      ['a limit of 0', 'limit=0', 'query.limit'],
      ['a negative retry count', 'retry_count_min=-1', 'query.retry_count_min'],
      ['an empty range', 'retry_count_min=2&retry_count_max=1', 'query.retry_count_min is 2, more than'],
      ['a group that is not a number', 'group_id=first', 'query.group_id'],
      ['an invalid cursor', 'cursor=abc', 'query.cursor is not a cursor'],
      ['a NUL character', 'message=a%00b', 'query.message contains a NUL'],
      ['several invalid parameters together', 'status=X&dead_lettered_from=Y', 'query.dead_lettered_from'],
    ])('%s is refused with the name of the parameter', async (_name, query, message) => {
      const { status, body } = await api.get(`/api/v1/letters?${query}`)
      expect(status).toBe(400)
      expect(body.error).toMatchObject({ code: 'BAD_REQUEST', message: expect.stringContaining(message) })
    })

    it('a cursor of another order is refused', async () => {
      const { dead } = await createVariousLetters(api)
      const { body } = await api.get(`/api/v1/letters?queue=${dead}&limit=1`)
      const other = await api.get(`/api/v1/letters?queue=${dead}&order=asc&cursor=${body.next_cursor}`)
      expect(other.status).toBe(400)
      expect(other.body.error.message).toContain('another order')
    })
  })

  it('times that cannot be stored are accepted and clamped', async () => {
    const { numbers } = await createVariousLetters(api)
    expect(
      await numbers('dead_lettered_until=9999-12-31T23:59:59Z&dead_lettered_from=0001-01-01T00:00:00Z'),
    ).toHaveLength(10)
  })
})

describeLettersServers('the counts of letters', (api) => {
  it('counts by any fields are exact and change with the letters', async () => {
    const { dead, ids } = await createVariousLetters(api)
    const counts = async (query: string) =>
      (await api.get(`/api/v1/letters/counts?queue=${dead}&${query}`)).body
    expect(await counts('')).toEqual({ counts: [{ count: 10 }], total: 10 })
    expect(await counts('by=error_code')).toEqual({
      counts: [
        { count: 7, error_code: 'refused' },
        { count: 3, error_code: 'timeout' },
      ],
      total: 10,
    })
    await api.post('/api/v1/letters/discard', { ids: ids.slice(0, 4), reason: 'tests' })
    expect(await counts('by=queue,status,letter_class')).toEqual({
      counts: [
        { count: 6, queue: dead, status: 'PENDING', letter_class: 'standard' },
        { count: 4, queue: dead, status: 'DISCARDED', letter_class: 'standard' },
      ],
      total: 10,
    })
    expect(await counts('by=error_class&status=PENDING')).toMatchObject({
      counts: [
        { count: 5, error_class: 'net.Refused' },
        { count: 1, error_class: 'TimeoutError' },
      ],
    })
    expect((await counts('by=retry_count')).counts).toEqual([{ count: 10, retry_count: 0 }])
    expect((await counts('status=DEAD')).total).toBe(0)
  })

  it.each([
    ['a condition that needs a search', 'message=a', 'query.message is not known'],
    ['an unknown field to count by', 'by=colour', 'query.by has "colour"'],
    ['a retry count that is not counted separately', 'retry_count_min=12', 'query.retry_count_min'],
  ])('counts refuse %s', async (_name, query, message) => {
    const { status, body } = await api.get(`/api/v1/letters/counts?${query}`)
    expect(status).toBe(400)
    expect(body.error.message).toContain(message)
  })
})
