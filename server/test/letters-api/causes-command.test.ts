import { expect, it } from 'vitest'
import type { Context } from '../../src/cli/context.ts'
import { run } from '../../src/cli/run.ts'
import { pollUntil } from '../http/poll-until.ts'
import { createEnvelope, describeLettersServers } from './servers.ts'

const failing = (queue: string, message: string) =>
  createEnvelope(queue, { error_details: { exception_class: 'HttpError', message } })

describeLettersServers('the commands for causes', (api) => {
  const redrive = async (...words: readonly string[]) => {
    const printed: string[] = []
    const reported: string[] = []
    const context: Context = {
      environment: { REDRIVE_SERVER: api.url },
      folder: '/',
      print: (line) => void printed.push(line),
      report: (line) => void reported.push(line),
    }
    const exitCode = await run(['causes', ...words], context)
    return { exitCode, printed, reported: reported.join('\n') }
  }
  const campaignCount = async () => (await api.get('/api/v1/campaigns')).body.campaigns.length

  it('an operator lists causes, sees what a redrive would do, and starts it only with --yes and a reason', async () => {
    const [a, b] = [await api.createQueues(), await api.createQueues()]
    const url = 'https://api.partner.example/v1/orders/'
    await api.capture(
      a.dead,
      failing(a.queue, `HTTP 503 from ${url}1`),
      failing(a.queue, `HTTP 404 from ${url}2`),
    )
    await api.capture(b.dead, failing(b.queue, `HTTP 503 from ${url}3`))
    const of = ['--queue', a.dead, '--queue', b.dead]
    const listed = await redrive('list', ...of)
    expect(listed.printed[1]).toMatch(/^[0-9a-f]{16} +2 +2 +2 .* HTTP 503 from https:/)
    const id = listed.printed[1]?.slice(0, 16) ?? ''
    expect((await redrive('show', id)).printed).toContain(`  ${b.dead}: 1`)
    expect(
      JSON.parse((await redrive('list', '--json', '--limit', '1', ...of)).printed[0] ?? '').causes,
    ).toHaveLength(1)

    const before = await campaignCount()
    const preview = await redrive('redrive', id)
    expect(preview).toMatchObject({ exitCode: 0, printed: [] })
    expect(preview.reported).toContain('redrive 2 letters: HTTP 503')
    expect(preview.reported).toContain(`1 to ${a.queue}`)
    expect(preview.reported).toContain('nothing was changed')
    expect((await redrive('redrive', id, '--yes')).reported).toContain('--reason is missing')
    const unexpected = await redrive('redrive', id, '--yes', '--reason', 'r', '--expect', '3')
    expect(unexpected).toMatchObject({ exitCode: 1, reported: expect.stringContaining('409') })
    expect(await campaignCount()).toBe(before)

    const started = await redrive(
      'redrive',
      id,
      '--queue',
      a.dead,
      '--yes',
      '--reason',
      'ticket 4711',
      '--expect',
      '1',
    )
    const campaign = async () => (await api.get(`/api/v1/campaigns/${started.printed[0]}`)).body
    await pollUntil(
      campaign,
      ({ counts }) => counts.sent === 1 || counts.processed === 1 || counts.waiting === 1,
    )
    expect(await campaign()).toMatchObject({
      reason: 'ticket 4711',
      filter: { cause_id: [id], queue: [a.dead] },
    })
    const discarded = await redrive('discard', id, '--queue', b.dead, '--yes', '--reason', 'known')
    const counts = async () => (await api.get(`/api/v1/campaigns/${discarded.printed[0]}`)).body.counts
    expect(await pollUntil(counts, ({ discarded: count }) => count === 1)).toMatchObject({ discarded: 1 })
  })

  it('causes are merged with a reason, and an unknown cause or server is reported in a sentence', async () => {
    const { queue, dead } = await api.createQueues()
    await api.capture(dead, failing(queue, 'the lake froze'), failing(queue, 'ice on the pier'))
    const ids = (await redrive('list', '--queue', dead)).printed.slice(1).map((line) => line.slice(0, 16))
    const merged = await redrive('merge', ...ids, '--reason', 'both are winter')
    expect(merged.printed).toEqual([ids[0]])
    expect((await redrive('list', '--queue', dead)).printed).toHaveLength(2)
    const unknown = await redrive('show', 'nothing')
    expect(unknown).toMatchObject({
      exitCode: 1,
      reported: expect.stringContaining('cause "nothing" does not exist'),
    })
    const gone = await redrive('list', '--server', 'http://127.0.0.1:9')
    expect(gone).toMatchObject({ exitCode: 1, reported: expect.stringContaining('there is no server at') })
  })
})
