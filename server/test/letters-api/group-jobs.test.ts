import { expect, it } from 'vitest'
import { pollUntil } from '../http/poll-until.ts'
import { type Body, createEnvelope, describeLettersServers, type LettersServer } from './servers.ts'

const failing = (queue: string, message: string, original_value: object = {}) =>
  createEnvelope(queue, { original_value, error_details: { exception_class: 'E', message } })

const waitForJob = (api: LettersServer, id: string): Promise<Body> =>
  pollUntil(
    async () => (await api.get(`/api/v1/group-jobs/${id}`)).body,
    ({ state }) => state !== 'running',
  )
const titles = async (api: LettersServer, dead: string) =>
  (await api.get(`/api/v1/groups?queue=${dead}`)).body.groups.map(({ title, count }: Body) => [title, count])

describeLettersServers('rules and background jobs of groups', (api) => {
  it('rules are previewed, apply to new letters, and to existing letters after a regroup job', async () => {
    const { queue, dead } = await api.createQueues()
    const ids = await api.capture(
      dead,
      failing(queue, 'stock of the north depot is low', { event: { type: 'order' } }),
      failing(queue, 'stock of the south depot is low', { event: { type: 'order' } }),
      failing(queue, 'stock of the south depot is low', { event: { type: 'refund' } }),
    )
    const before = await titles(api, dead)
    expect(before).toHaveLength(2)
    const rules = [
      { name: 'depot', as: 'variable', pattern: 'the (\\w+) depot' },
      { name: 'type', as: 'code', json_path: '$["event"]["type"]' },
    ]
    const url = `/api/v1/queues/${dead}/grouping-rules`
    const preview = await api.post(`${url}/preview`, { rules })
    expect(preview.body).toMatchObject({
      examined_count: 3,
      changed_count: 3,
      group_count_before: 2,
      group_count: 2,
      groups: [
        { title: 'stock of the <depot> depot is low [type=order]', count: 2 },
        { title: 'stock of the <depot> depot is low [type=refund]', count: 1 },
      ],
    })
    expect(await titles(api, dead)).toEqual(before)

    expect((await api.put(url, { rules, reason: 'depots are data' })).body).toEqual({ rules })
    expect((await api.get(url)).body).toEqual({ rules })
    await api.capture(dead, failing(queue, 'stock of the east depot is low', { event: { type: 'order' } }))
    const started = await api.post(`/api/v1/queues/${dead}/regroup`, { reason: 'new rules' })
    expect(started.body).toMatchObject({ kind: 'regroup', state: 'running', queue: dead, total_count: 4 })
    expect(await waitForJob(api, started.body.id)).toMatchObject({ state: 'done', moved_count: 3 })
    expect(await titles(api, dead)).toEqual([
      ['stock of the <depot> depot is low [type=order]', 3],
      ['stock of the <depot> depot is low [type=refund]', 1],
    ])
    const [first] = (await api.get(`/api/v1/groups?queue=${dead}`)).body.groups
    expect(first.trend.counts.reduce((sum: number, n: number) => sum + n)).toBe(3)
    const letter = (await api.get(`/api/v1/letters/${ids[0]}`)).body
    expect(letter.group_id).toBe(first.id)
    const { body } = await api.get(`/api/v1/audit?target=${dead}&action=group.regroup`)
    expect(body.entries).toMatchObject([{ reason: 'new rules', details: { job: started.body.id } }])
  })

  it('invalid rules are refused with the field and the reason', async () => {
    const { dead } = await api.createQueues()
    const put = async (rule: object) => {
      const { status, body } = await api.put(`/api/v1/queues/${dead}/grouping-rules`, { rules: [rule] })
      return [status, JSON.stringify(body.error)]
    }
    const rule = { name: 'a', as: 'code' }
    for (const [given, expected] of [
      [{ ...rule, pattern: '(a' }, 'missing closing )'],
      [{ ...rule, pattern: '(?=a)' }, 'not valid RE2'],
      [rule, 'pattern'],
      [{ ...rule, pattern: 'a', json_path: '$.a' }, 'not both'],
      [{ ...rule, json_path: '$' }, 'names no field'],
    ] as const) {
      const [status, text] = await put(given)
      expect([status, text]).toEqual([400, expect.stringContaining(expected)])
    }
  })

  it('a split moves the matching letters of a group to a new group with all counts', async () => {
    const { queue, dead } = await api.createQueues()
    const card = (country: string) => failing(queue, 'card refused', { country })
    await api.capture(dead, card('at'), card('at'), card('de'), failing(queue, 'disk full'))
    const [group] = (await api.get(`/api/v1/groups?queue=${dead}`)).body.groups
    const split = { filter: { json: '$.country=at' }, title: 'card refused in Austria', reason: 'bank' }
    const started = await api.post(`/api/v1/groups/${group.id}/split`, split)
    const done = await waitForJob(api, started.body.id)
    expect(done).toMatchObject({ state: 'done', moved_count: 2, total_count: 3, group_id: group.id })
    expect(new Set(await titles(api, dead))).toEqual(
      new Set([
        ['card refused in Austria', 2],
        ['card refused', 1],
        ['disk full', 1],
      ]),
    )
    const letters = (await api.get(`/api/v1/letters?group_id=${done.new_group_id}`)).body
    expect(letters.total).toBe(2)
    expect(letters.letters.map(({ group_id }: Body) => group_id)).toEqual([
      done.new_group_id,
      done.new_group_id,
    ])
    const cause = (await api.get(`/api/v1/groups/${done.new_group_id}`)).body.cause_id
    expect(cause).not.toBe(group.cause_id)
    // Merged back, both ids mean one group again.
    await api.post(`/api/v1/groups/${group.id}/merge`, { group_ids: [done.new_group_id] })
    expect((await api.get(`/api/v1/groups/${done.new_group_id}`)).body).toMatchObject({
      id: group.id,
      count: 3,
    })
    const again = await api.post(`/api/v1/group-jobs/${started.body.id}/cancel`)
    expect(again.body).toMatchObject({ state: 'done' })
    expect((await api.get('/api/v1/group-jobs?limit=1')).body.jobs).toHaveLength(1)
    expect(await api.get('/api/v1/group-jobs/unknown')).toMatchObject({ status: 404 })
  })
})
