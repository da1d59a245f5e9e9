/** The Nagios plugin as monitors run it: a process with one line of output and an exit code. */
import { spawn } from 'node:child_process'
import { type AddressInfo, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { describeWebhookServers } from '../webhook-api/webhook-server.ts'

const launcher = fileURLToPath(new URL('../../bin/redrive.js', import.meta.url))

async function check(args: readonly string[]): Promise<readonly [code: number | null, stdout: string]> {
  const child = spawn(process.execPath, [launcher, 'check', 'dlq', ...args], {
    env: { PATH: process.env.PATH, REDRIVE_TEST_SOURCE: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let stdout = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  return new Promise((resolve) => child.on('close', (code) => resolve([code, stdout.trimEnd()])))
}

async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

describeWebhookServers('redrive check dlq', {}, ({ server, send, setUp, broadcast, tokens, until }) => {
  const kill = async (channel: string, count: number) => {
    await setUp(channel, 'k', 'pull')
    for (let n = 0; n < count; n++) await broadcast(channel)
    const path = `/channel/${channel}/consumer/k`
    const headers = tokens(channel, 'k')
    const list = async () => (await send('GET', `${path}/queued-jobs`, { headers })).json.Result
    for (const { ID } of await until(list, ({ length }) => length === count))
      for (const NextState of ['INFLIGHT', 'DEAD'])
        await send('POST', `${path}/job/${ID}`, { headers, body: JSON.stringify({ NextState }) })
  }
  const run = (...args: string[]) => check(['--server', server.url, ...args])

  it('the exit code is the worst state, and the line has performance data', async () => {
    await kill('n1', 3)
    await kill('n2', 1)
    expect(await run('--warning', '3', '--critical', '5')).toEqual([
      0,
      "DLQ OK - 4 dead jobs of 2 consumers | total=4;;;0 'n1/k'=3;3;5;0 'n2/k'=1;3;5;0",
    ])
    expect(await run('--warning', '2', '--critical', '5')).toEqual([
      1,
      "DLQ WARNING - 4 dead jobs of 2 consumers: n1/k has 3 | total=4;;;0 'n1/k'=3;2;5;0 'n2/k'=1;2;5;0",
    ])
    expect((await run('--warning', '0', '--critical', '2'))[0]).toBe(2)
    expect(await run('--warning', '0', '--critical', '2', '--channel', 'n2')).toEqual([
      1,
      "DLQ WARNING - 1 dead job of 1 consumer: n2/k has 1 | total=1;;;0 'n2/k'=1;0;2;0",
    ])
    expect((await run('--warning', '0', '--critical', '2', '--consumer', 'k'))[0]).toBe(2)
  })

  it('a healthy consumer is OK, and an unknown one or a silent server is UNKNOWN', async () => {
    await setUp('n3', 'k', 'pull')
    const limits = ['--warning', '1', '--critical', '2']
    expect(await run(...limits, '--channel', 'n3')).toEqual([
      0,
      'DLQ OK - 0 dead jobs of 0 consumers | total=0;;;0',
    ])
    expect(await run(...limits, '--channel', 'n3', '--consumer', 'typo')).toEqual([
      3,
      'DLQ UNKNOWN - there is no consumer typo in channel n3',
    ])
    const url = `http://127.0.0.1:${await findFreePort()}`
    const [code, line] = await check(['--server', url, ...limits])
    expect([code, line]).toEqual([3, expect.stringMatching(/^DLQ UNKNOWN - http.*: connect ECONNREFUSED/)])
    expect((await run('--warning', '1'))[0]).toBe(3)
  })
})
