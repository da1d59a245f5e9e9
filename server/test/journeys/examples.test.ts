/** The programs in examples/, with the client installed as from the registry. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { repository, runProgram } from '../../../tools/run-program.ts'
import { pollUntil } from '../http/poll-until.ts'
import { startTestServer } from '../http/test-server.ts'

describe('the programs in examples/', () => {
  let root: string
  const children: ChildProcess[] = []
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'redrive-examples-'))
    const installed = join(root, 'node_modules/@redrive/client')
    await mkdir(installed, { recursive: true })
    const args = ['-p', 'client/tsconfig.build.json', '--noEmitOnError', '--outDir', join(installed, 'dist')]
    expect(await runProgram('tsc', args)).toBe(0)
    await cp(join(repository, 'client/package.json'), join(installed, 'package.json'))
    for (const name of ['queue-worker', 'webhook-receiver']) {
      await cp(join(repository, 'examples', name), join(root, name), { recursive: true })
    }
  }, 120_000)
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })
  afterAll(() => rm(root, { recursive: true, force: true }))

  const run = (name: string, env: Readonly<Record<string, string>>) => {
    const child = spawn(process.execPath, ['main.ts'], {
      cwd: join(root, name),
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    children.push(child)
    const output = { text: '' }
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data: Buffer) => {
        output.text += data.toString()
      })
    }
    const waitFor = (part: string) =>
      pollUntil(
        async () => output.text,
        (text) => text.includes(part),
      )
    return { child, output, waitFor }
  }

  it('examples/queue-worker brings an order from a dead letter to RESOLVED, and prints what its README says', async () => {
    const { url } = await startTestServer()
    const { child, output } = run('queue-worker', { REDRIVE_URL: url })
    expect(await once(child, 'exit')).toEqual([0, null])
    const readme = await readFile(join(root, 'queue-worker/README.md'), 'utf8')
    for (const line of output.text.trim().split('\n')) expect(readme).toContain(`    ${line}\n`)
    expect(output.text.trim().split('\n')).toHaveLength(3)
    const client = createClient({ url })
    const { letters } = await client.listLetters({ queue: 'example-orders-dead' })
    expect(letters).toMatchObject([{ status: 'RESOLVED', failure: { error_code: 'tax_rate_missing' } }])
    expect((await client.getQueue('example-orders')).counts).toMatchObject({ completed: 1, deadLettered: 1 })

    const again = run('queue-worker', { REDRIVE_URL: url })
    expect(await once(again.child, 'exit')).toEqual([0, null])
  })

  it('examples/webhook-receiver processes a signed push, and refuses a push with a wrong signature', async () => {
    const { url } = await startTestServer()
    const put = async (path: string, form: Record<string, string>): Promise<void> => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await fetch(url + path, {
        method: 'PUT',
        headers,
        body: new URLSearchParams(form).toString(),
      })
      expect(answer.status).toBe(200)
    }
    await put('/producer/shop', { token: 'secret-1' })
    await put('/channel/orders', { token: 'secret-2' })
    // The receiver gets its port when it starts, and it needs the secret to start.
    await put('/channel/orders/consumer/billing', { callbackUrl: 'http://127.0.0.1:9/hook', type: 'pull' })
    const answer = await fetch(`${url}/api/v1/webhooks/orders/billing/secret`)
    const { secret } = (await answer.json()) as { secret: string }
    const receiver = run('webhook-receiver', { WEBHOOK_SECRET: secret, PORT: '0' })
    const started = await receiver.waitFor('listening on ')
    const callbackUrl = `http://127.0.0.1:${/listening on (\d+)/.exec(started)?.[1]}/hook`

    const forged = await fetch(callbackUrl, {
      method: 'POST',
      headers: { 'webhook-id': 'x', 'webhook-timestamp': '1', 'webhook-signature': 'v1,AAAA' },
      body: '{}',
    })
    expect(forged.status).toBe(401)

    const consumer = await fetch(`${url}/channel/orders/consumer/billing`)
    const changed = await fetch(`${url}/channel/orders/consumer/billing`, {
      method: 'PUT',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'if-unmodified-since': consumer.headers.get('last-modified') ?? '',
      },
      body: new URLSearchParams({ callbackUrl, type: 'push' }).toString(),
    })
    expect(changed.status).toBe(200)
    const sent = await fetch(`${url}/channel/orders/broadcast`, {
      method: 'POST',
      headers: {
        'x-broker-channel-token': 'secret-2',
        'x-broker-producer-id': 'shop',
        'x-broker-producer-token': 'secret-1',
        'content-type': 'application/json',
      },
      body: '{"order": 7}',
    })
    expect(sent.status).toBe(201)
    await receiver.waitFor('processed {"order":7}')
    expect(receiver.output.text.match(/processed/g)).toHaveLength(1)
    expect(receiver.output.text).toContain('refused a push: ')
    receiver.child.kill('SIGTERM')
    expect(await once(receiver.child, 'exit')).toEqual([0, null])
  })
})
