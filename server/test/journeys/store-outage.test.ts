import { afterAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { needs, requireService } from '../../../tools/services/require-service.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startTestServer } from '../http/test-server.ts'

const postgres = await requireService('privatePostgres')
afterAll(async () => {
  if (postgres.missing === undefined) await postgres.end()
})

type HealthBody = {
  status: string
  checks: { 'queues:storage': readonly { status: string; output?: string }[] }
}

async function healthOf(url: string) {
  const answer = await fetch(`${url}/health`)
  return { status: answer.status, body: (await answer.json()) as HealthBody }
}

async function probesOf(url: string) {
  const [alive, ready] = await Promise.all([fetch(`${url}/healthz`), fetch(`${url}/readyz`)])
  return { alive: alive.status, ready: ready.status, body: await ready.json() }
}

/** What strangers may ask for in each dialect, as one text. */
async function answersOf(url: string): Promise<string> {
  const post = { method: 'POST', headers: { 'content-type': 'application/json' } }
  const asked = [
    ...[
      '/api/v1/queues',
      '/api/v1/letters',
      '/api/v1/letters/export',
      '/api/v1/archive',
      '/api/v1/campaigns',
    ],
    ...[
      '/api/v1/dlq',
      '/api/v1/dlq/stats',
      '/api/v1/dlq/orders',
      '/api/v1/info',
      '/health',
      '/readyz',
      '/metrics',
    ],
  ].map((path) => fetch(url + path))
  const calls = [
    fetch(`${url}/v1/queues.list`, { ...post, body: '{}' }),
    fetch(`${url}/api/v1/dlq/requeue`, { ...post, body: '{"ids":["41"]}' }),
    fetch(`${url}/api/v1/letters`, {
      ...post,
      body: '{"queue":"orders","letters":[{"original_value":"x"}]}',
    }),
  ]
  const answers = await Promise.all([...asked, ...calls])
  expect(answers.filter(({ status }) => status === 503).length).toBeGreaterThan(8)
  return (await Promise.all(answers.map((answer) => answer.text()))).join('\n')
}

const quick = { 'store.retry_backoff_max': 200, 'postgres.connect_timeout': 2_000 } as const

describe('a PostgreSQL that comes and goes', needs(postgres), () => {
  const password = () => new URL(postgres.url).password
  const address = () => new URL(postgres.url).host

  it('is waited for at the start: the server is up, says why it is not well, and recovers by itself', async () => {
    await postgres.stop()
    const { url, lines } = await startTestServer(quick, { kind: 'postgres', url: postgres.url })

    const sick = await healthOf(url)
    expect(sick).toMatchObject({
      status: 503,
      body: { status: 'fail', checks: { 'queues:storage': [{ status: 'fail' }] } },
    })
    expect(sick.body.checks['queues:storage'][0]?.output).toMatch(/cannot reach .*ECONNREFUSED/)
    expect(await probesOf(url)).toMatchObject({
      alive: 200,
      ready: 503,
      body: { status: 'unhealthy', checks: { database: 'error', kafka: 'not_configured' } },
    })
    const refused = await fetch(`${url}/api/v1/queues`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
    expect(await refused.json()).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } })
    expect((await fetch(`${url}/api/v1/info`)).status).toBe(200)
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('redrive_store_up 0')
    // Where the store is stands in the log, and is no business of whoever calls.
    expect(await answersOf(url)).not.toContain(address())
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'error', reason: expect.stringContaining(address()) }),
    )

    await postgres.start()
    await pollUntil(
      () => healthOf(url),
      (health) => health.status === 200,
    )
    expect(await (await fetch(`${url}/api/v1/queues`)).json()).toEqual({ queues: [], next: null })
    expect(await probesOf(url)).toEqual({
      alive: 200,
      ready: 200,
      body: {
        status: 'healthy',
        checks: { database: 'ok', kafka: 'not_configured' },
        timestamp: expect.stringMatching(/^2\d{3}-.*Z$/),
      },
    })

    expect(JSON.stringify([lines, sick])).not.toContain(password())
    expect(lines.filter((line) => line.msg === 'store is up')).toHaveLength(1)
  })

  it('may go while the server runs: requests are told so, and are served again when it is back', async () => {
    const { url, lines } = await startTestServer(quick, { kind: 'postgres', url: postgres.url })
    expect((await healthOf(url)).status).toBe(200)
    await postgres.stop('immediate')
    const refused = await fetch(`${url}/api/v1/queues`)
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      { error: { code: 'STORE_UNAVAILABLE' } },
    ])
    await pollUntil(
      () => healthOf(url),
      (health) => health.status === 503,
    )
    expect(await answersOf(url)).not.toContain(address())
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'error', reason: expect.stringContaining(address()) }),
    )
    await postgres.start()
    await pollUntil(
      () => fetch(`${url}/api/v1/queues`).then((answer) => answer.status),
      (status) => status === 200,
    )
    await pollUntil(
      () => healthOf(url),
      (health) => health.status === 200,
    )
  })

  it('may go while somebody follows a campaign, who hears of it again when it is back', async () => {
    const { url, lines } = await startTestServer(quick, { kind: 'postgres', url: postgres.url })
    const client = createClient({ url, retriesMax: 0 })
    const made = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name":"followed"}',
    }
    expect((await fetch(`${url}/api/v1/queues`, made)).status).toBe(200)
    const letter = { original_queue: 'nowhere', original_value: 'x' }
    await client.captureLetters(
      'followed',
      Array.from({ length: 50 }, () => letter),
    )
    const spec = { name: 'slow', reason: 'r', action: 'discard', rate_per_second: 1 } as const
    const { id } = await client.createCampaign({ ...spec, filter: { queue: 'followed' } })
    await client.pauseCampaign(id)

    const response = await fetch(`${url}/api/v1/campaigns/${id}/events`)
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    let isOver = false
    const heard = (async () => {
      for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
        text += part.value
      isOver = true
    })()
    await pollUntil(
      async () => text,
      (seen) => seen.includes('event: campaign'),
    )
    await postgres.stop('immediate')
    await pollUntil(
      () => healthOf(url),
      (health) => health.status === 503,
    )
    await postgres.start()
    await pollUntil(
      () => healthOf(url),
      (health) => health.status === 200,
    )
    expect([isOver, text.includes('event: end')]).toEqual([false, false])
    await client.cancelCampaign(id)
    await heard
    expect(text).toMatch(/event: end\ndata: \{.*"state":"cancelled"/)
    expect(lines.filter(({ msg }) => msg === 'a campaign could not be watched any more')).toEqual([])
  })

  it('stops the start when it refuses us, without telling the password', async () => {
    const wrong = new URL(postgres.url)
    wrong.password = 'not-the-password'
    const failed = await startTestServer(quick, { kind: 'postgres', url: wrong.href }).catch((error) => error)
    expect(failed).toMatchObject({ code: 'STORE_REFUSED' })
    expect(failed.message).not.toContain('not-the-password')
  })

  it('does not hold up the stop while it cannot be reached', async () => {
    await postgres.stop()
    const server = await startTestServer(quick, { kind: 'postgres', url: postgres.url })
    await server.stop(1_000)
    await expect(fetch(`${server.url}/health`)).rejects.toThrow()
    await postgres.start()
  })
})
