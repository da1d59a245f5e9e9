import { expect, it } from 'vitest'
import type { Campaign } from '../../../client/src/index.ts'
import { pollUntil } from '../http/poll-until.ts'
import { createEnvelope, describeLettersServers, type LettersServer } from './servers.ts'
import { complete, lease } from './worker.ts'

const named = { name: 'after the fix', reason: 'release 7 mends it', action: 'redrive' } as const

async function begun(api: LettersServer, count: number, more: object = {}) {
  const { queue, dead } = await api.createQueues()
  await api.capture(dead, ...Array.from({ length: count }, () => createEnvelope(queue)))
  const { id } = await api.client.createCampaign({ ...named, filter: { queue: dead }, ...more })
  return { queue, dead, id }
}

describeLettersServers('the events of a campaign', (api) => {
  it('tell its present state, every change, and its end', async () => {
    const { queue, id } = await begun(api, 5)
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

  it('are server-sent events that a browser can read, and tell it to stay away after the end', async () => {
    const { id } = await begun(api, 0)
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

  it('end with the client that leaves', async () => {
    const { id } = await begun(api, 3)
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

  it('end when the server stops, at once, and go on at the next one', async () => {
    const { id } = await begun(api, 3)
    const response = await fetch(`${api.url}/api/v1/campaigns/${id}/events`)
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('event: campaign')) text += (await reader?.read())?.value ?? ''
    const began = performance.now()
    const stopped = api.stop(10_000)
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      text += part.value
    await stopped
    expect(performance.now() - began).toBeLessThan(8_000)
    expect(text).not.toContain('event: end')
    await api.start()
  })
})
