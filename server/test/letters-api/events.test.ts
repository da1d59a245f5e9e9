import { expect, it } from 'vitest'
import type { Campaign } from '../../../client/src/index.ts'
import { pollUntil } from '../http/poll-until.ts'
import { createEnvelope, describeLettersServers, type LettersServer } from './servers.ts'
import { complete, lease } from './worker.ts'

const named = { name: 'after the fix', reason: 'release 7 fixes it', action: 'redrive' } as const

async function startCampaign(api: LettersServer, count: number, more: object = {}) {
  const { queue, dead } = await api.createQueues()
  await api.capture(dead, ...Array.from({ length: count }, () => createEnvelope(queue)))
  const { id } = await api.client.createCampaign({ ...named, filter: { queue: dead }, ...more })
  return { queue, dead, id }
}

describeLettersServers('the events of a campaign', (api) => {
  it('the events of a campaign have its current state, every change and its end', async () => {
    const { queue, id } = await startCampaign(api, 5)
    const seen: Campaign[] = []
    const watched = (async () => {
      for await (const campaign of api.client.watchCampaign(id)) seen.push(campaign)
    })()
    await pollUntil(
      async () => seen.at(-1),
      (last) => last?.counts.sent === 5,
    )
    await complete(api, queue, await lease(api, queue, 5))
    await watched
    expect(seen.at(-1)).toMatchObject({ state: 'done', is_ended: true, counts: { resolved: 5 } })
    expect(seen.every(({ is_ended }, index) => is_ended === (index === seen.length - 1))).toBe(true)
  })

  it('the events are server-sent events, and a client that has the last event gets 204', async () => {
    const { id } = await startCampaign(api, 0)
    const url = `${api.url}/api/v1/campaigns/${id}/events`
    const response = await fetch(url)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const text = await response.text()
    const last = /id: (.+)\nevent: end\ndata: (\{.+\})\n\n$/.exec(text)
    expect(text.startsWith('retry: 2000\n\n')).toBe(true)
    expect(JSON.parse(last?.[2] ?? '')).toMatchObject({ id, is_ended: true })
    const again = await fetch(url, { headers: { 'Last-Event-ID': last?.[1] ?? '' } })
    expect(again.status).toBe(204)
    expect((await fetch(url, { headers: { 'Last-Event-ID': 'other' } })).status).toBe(200)
  })

  it('watching a campaign ends when the client stops', async () => {
    const { id } = await startCampaign(api, 3)
    for await (const { state } of api.client.watchCampaign(id)) {
      expect(state).toBeTypeOf('string')
      break
    }
    const leaving = new AbortController()
    const watched = api.client.watchCampaign(id, { signal: leaving.signal })
    await watched.next()
    leaving.abort(new Error('enough'))
    await expect(
      (async () => {
        for await (const _ of watched);
      })(),
    ).rejects.toThrow('enough')
  })

  it('the events end when the server begins to stop', async () => {
    const { id } = await startCampaign(api, 3)
    const response = await fetch(`${api.url}/api/v1/campaigns/${id}/events`)
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('event: campaign')) text += (await reader?.read())?.value ?? ''
    // The grace time is longer than the timeout of this test, so the stop must end the events.
    const stopped = api.stop(600_000)
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      text += part.value
    await stopped
    expect(text).not.toContain('event: end')
    await api.start()
  })
})
