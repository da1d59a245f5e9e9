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

async function readHealth(url: string) {
  const answer = await fetch(`${url}/health`)
  return { status: answer.status, body: (await answer.json()) as HealthBody }
}

async function readProbes(url: string) {
  const [alive, ready] = await Promise.all([fetch(`${url}/healthz`), fetch(`${url}/readyz`)])
  return { alive: alive.status, ready: ready.status, body: await ready.json() }
}

/** Sends requests to every dialect without a store, and returns all their answers as one text. */
async function readPublicAnswers(url: string): Promise<string> {
  const post = { method: 'POST', headers: { 'content-type': 'application/json' } }
  const reads = [
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
  const writes = [
    fetch(`${url}/v1/queues.list`, { ...post, body: '{}' }),
    fetch(`${url}/api/v1/dlq/requeue`, { ...post, body: '{"ids":["41"]}' }),
    fetch(`${url}/api/v1/letters`, {
      ...post,
      body: '{"queue":"orders","letters":[{"original_value":"x"}]}',
    }),
  ]
  const answers = await Promise.all([...reads, ...writes])
  expect(answers.filter(({ status }) => status === 503).length).toBeGreaterThan(8)
  return (await Promise.all(answers.map((answer) => answer.text()))).join('\n')
}

const quick = { 'store.retry_backoff_max': 200, 'postgres.connect_timeout': 2_000 } as const

describe('a PostgreSQL outage', needs(postgres), () => {
  const password = () => new URL(postgres.url).password
  const address = () => new URL(postgres.url).host

  it('a server that starts during an outage reports the reason, and recovers automatically', async () => {
    await postgres.stop()
    const { url, lines } = await startTestServer(quick, { kind: 'postgres', url: postgres.url })

    const failing = await readHealth(url)
    expect(failing).toMatchObject({
      status: 503,
      body: { status: 'fail', checks: { 'queues:storage': [{ status: 'fail' }] } },
    })
    expect(failing.body.checks['queues:storage'][0]?.output).toMatch(/cannot reach .*ECONNREFUSED/)
    expect(await readProbes(url)).toMatchObject({
      alive: 200,
      ready: 503,
      body: { status: 'unhealthy', checks: { database: 'error', kafka: 'not_configured' } },
    })
    const refused = await fetch(`${url}/api/v1/queues`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
    expect(await refused.json()).toMatchObject({ error: { code: 'STORE_UNAVAILABLE' } })
    expect((await fetch(`${url}/api/v1/info`)).status).toBe(200)
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('redrive_store_up 0')
    // The log contains the address of the store. Answers to callers do not.
    expect(await readPublicAnswers(url)).not.toContain(address())
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'error', reason: expect.stringContaining(address()) }),
    )

    await postgres.start()
    await pollUntil(
      () => readHealth(url),
      (health) => health.status === 200,
    )
    expect(await (await fetch(`${url}/api/v1/queues`)).json()).toEqual({ queues: [], next_cursor: null })
    expect(await readProbes(url)).toEqual({
      alive: 200,
      ready: 200,
      body: {
        status: 'healthy',
        checks: { database: 'ok', kafka: 'not_configured' },
        timestamp: expect.stringMatching(/^2\d{3}-.*Z$/),
      },
    })

    expect(JSON.stringify([lines, failing])).not.toContain(password())
    expect(lines.filter((line) => line.msg === 'store is up')).toHaveLength(1)
  })

  it('requests get 503 during an outage, and are served again after it', async () => {
    const { url, lines } = await startTestServer(quick, { kind: 'postgres', url: postgres.url })
    expect((await readHealth(url)).status).toBe(200)
    await postgres.stop('immediate')
    const refused = await fetch(`${url}/api/v1/queues`)
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      { error: { code: 'STORE_UNAVAILABLE' } },
    ])
    await pollUntil(
      () => readHealth(url),
      (health) => health.status === 503,
    )
    expect(await readPublicAnswers(url)).not.toContain(address())
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'error', reason: expect.stringContaining(address()) }),
    )
    await postgres.start()
    await pollUntil(
      () => fetch(`${url}/api/v1/queues`).then((answer) => answer.status),
      (status) => status === 200,
    )
    await pollUntil(
      () => readHealth(url),
      (health) => health.status === 200,
    )
  })

  it('a campaign event stream stays open during an outage, and continues after it', async () => {
    const { url, lines } = await startTestServer(quick, { kind: 'postgres', url: postgres.url })
    const client = createClient({ url, retriesMax: 0 })
    const createRequest = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name":"followed"}',
    }
    expect((await fetch(`${url}/api/v1/queues`, createRequest)).status).toBe(200)
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
    let hasEnded = false
    const streamEnded = (async () => {
      for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
        text += part.value
      hasEnded = true
    })()
    await pollUntil(
      async () => text,
      (seen) => seen.includes('event: campaign'),
    )
    await postgres.stop('immediate')
    await pollUntil(
      () => readHealth(url),
      (health) => health.status === 503,
    )
    await postgres.start()
    await pollUntil(
      () => readHealth(url),
      (health) => health.status === 200,
    )
    expect([hasEnded, text.includes('event: end')]).toEqual([false, false])
    await client.cancelCampaign(id)
    await streamEnded
    expect(text).toMatch(/event: end\ndata: \{.*"state":"cancelled"/)
    expect(lines.filter(({ msg }) => msg === 'a campaign could not be watched any more')).toEqual([])
  })

  it('a start with a refused password fails, and its error does not contain the password', async () => {
    const wrong = new URL(postgres.url)
    wrong.password = 'not-the-password'
    const failed = await startTestServer(quick, { kind: 'postgres', url: wrong.href }).catch((error) => error)
    expect(failed).toMatchObject({ code: 'STORE_REFUSED' })
    expect(failed.message).not.toContain('not-the-password')
  })

  it('a server stops although its store cannot be reached', async () => {
    await postgres.stop()
    const server = await startTestServer(quick, { kind: 'postgres', url: postgres.url })
    await server.stop(1_000)
    await expect(fetch(`${server.url}/health`)).rejects.toThrow()
    await postgres.start()
  })
})
