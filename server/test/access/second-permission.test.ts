/** Calls that need two permissions need both in the same namespace. */
import { beforeAll, expect, it } from 'vitest'
import { bearer, describeKeysServer } from './keys-server.ts'

describeKeysServer('calls that need two permissions', 'SQLite memory', {}, (server) => {
  let key = ''
  const letters = { north: '', south: '' }

  beforeAll(async () => {
    const { key: created, userId } = await server.createKey()
    key = created
    const permissions = {
      north: ['letter.read', 'campaign.read', 'campaign.write', 'letter.redrive'],
      south: [
        'letter.read',
        'campaign.read',
        'campaign.write',
        'letter.redrive',
        'letter.edit',
        'letter.discard',
      ],
    }
    for (const name of ['north', 'south'] as const) {
      await server.admin('/v1/namespaces.create', { name })
      await server.admin('/v1/roles.create', {
        namespace: name,
        name: 'some',
        permissions: permissions[name],
      })
      await server.admin('/v1/rolebindings.create', { namespace: name, role_name: 'some', user_id: userId })
      for (const queue of [`${name}-dead`, `${name}-work`])
        await server.request(
          'POST',
          '/api/v1/queues',
          { name: queue, namespace: name },
          bearer(server.adminKey),
        )
      const captured = await server.request(
        'POST',
        '/api/v1/letters',
        {
          queue: `${name}-dead`,
          letters: [{ original_topic: `${name}-work`, original_value: 'x', error_details: { message: 'm' } }],
        },
        bearer(server.adminKey),
      )
      letters[name] = captured.body.letters[0].id
    }
  })

  it('a campaign that discards finds no letters where only redrives are allowed', async () => {
    const create = (queue: string) =>
      server.request(
        'POST',
        '/api/v1/campaigns',
        { name: 'n', reason: 'r', action: 'discard', filter: { queue } },
        bearer(key),
      )
    expect((await create('south-dead')).status).toBe(200)
    const refused = await create('north-dead')
    expect([refused.status, refused.body.error?.code]).not.toEqual([200, undefined])
    const { body } = await server.request(
      'GET',
      `/api/v1/letters/${letters.north}`,
      undefined,
      bearer(server.adminKey),
    )
    expect(body.status).toBe('PENDING')
  })

  it('a letter can be edited only where edits are allowed', async () => {
    const redrive = (name: 'north' | 'south', edit?: object) =>
      server.request(
        'POST',
        `/api/v1/letters/${letters[name]}/redrive`,
        { target: `${name}-work`, reason: 'r', ...(edit !== undefined && { edit }) },
        bearer(key),
      )
    const edit = { payload: { text: 'changed' } }
    const refused = await redrive('north', edit)
    expect([refused.status, refused.body.error.code]).toEqual([404, 'LETTER_NOT_FOUND'])
    expect((await redrive('north')).status).toBe(200)
  })

  it('a campaign can be stopped, but not started again or made faster, without what it does to its letters', async () => {
    const admin = bearer(server.adminKey)
    const letter = { original_topic: 'north-work', original_value: 'x', error_details: { message: 'm' } }
    const captured = { queue: 'north-dead', letters: [letter, letter, letter] }
    expect((await server.request('POST', '/api/v1/letters', captured, admin)).status).toBe(200)
    const spec = { name: 'n', reason: 'r', action: 'discard', filter: { queue: 'north-dead' } }
    const created = await server.request(
      'POST',
      '/api/v1/campaigns',
      { ...spec, rate_per_second: 0.001, canary_count: 0 },
      admin,
    )
    const path = `/api/v1/campaigns/${created.body.id}`
    const send = (method: string, action: string, body: object) =>
      server.request(method, path + action, { ...body, reason: 'r' }, bearer(key))
    expect((await send('POST', '/pause', {})).status).toBe(200)
    for (const refused of [
      await send('POST', '/resume', {}),
      await send('PATCH', '', { rate_per_second: 100 }),
    ])
      expect([refused.status, refused.body.error.code]).toEqual([403, 'ACCESS_DENIED'])
    expect((await send('POST', '/cancel', {})).status).toBe(200)
  })

  it('retry-all needs the permission to redrive', async () => {
    const { key: created, userId } = await server.createKey()
    const permissions = ['campaign.write', 'letter.read']
    await server.admin('/v1/roles.create', { namespace: '_system', name: 'starter', permissions })
    await server.admin('/v1/rolebindings.create', {
      namespace: '_system',
      role_name: 'starter',
      user_id: userId,
    })
    for (const path of [
      '/api/v1/dlq/north-work/retry-all',
      '/api/v1/dlq/messages/retry-all?topic=north-work',
    ]) {
      const refused = await server.request('POST', path, {}, bearer(created))
      expect([path, refused.status]).toEqual([path, 403])
    }
  })
})
