import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Context } from '../../src/cli/context.ts'
import { run } from '../../src/cli/run.ts'
import { startTestServer } from '../http/test-server.ts'
import { bearer } from './keys-server.ts'

describe('the commands for keys', () => {
  let folder = ''
  let path = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'redrive-keys-'))
    path = join(folder, 'redrive.db')
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const redrive = async (...words: readonly string[]) => {
    const printed: string[] = []
    const reported: string[] = []
    const context: Context = {
      environment: {},
      folder,
      print: (line) => void printed.push(line),
      report: (line) => void reported.push(line),
    }
    const exitCode = await run([...words], context)
    return { exitCode, printed, reported: reported.join('\n') }
  }

  it('a person who was locked out creates a key on the store, which works and can be revoked on the server', async () => {
    const store = { kind: 'sqlite', path } as const
    const first = await startTestServer({ access: 'keys' }, store)
    const locked = await redrive('keys', 'list', '--store', path, '--sqlite-lock-wait', '0s')
    expect(locked.exitCode).not.toBe(0)
    expect(locked.reported).toContain('--server <url>')
    await first.stop(0)
    const created = await redrive('keys', 'create', '--store', path, '--user', 'ann', '--role', 'Admin')
    expect(created.exitCode).toBe(0)
    const [key = ''] = created.printed
    expect(key).toMatch(/^qtr-live-[0-9A-Za-z]{43}$/)
    const { url } = await startTestServer({ access: 'keys' }, store)
    const status = async () => (await fetch(`${url}/api/v1/queues`, { headers: bearer(key) })).status
    expect(await status()).toBe(200)
    const target = ['--server', url, '--key', key]
    const shown = await redrive('access', 'show', ...target)
    expect(shown.printed.join('\n')).toMatch(/ann +Admin in _system +1/)
    expect(shown.printed[0]).toBe('access: keys')
    const prefix = key.slice(0, 'qtr-live-'.length + 8)
    expect((await redrive('keys', 'list', ...target)).printed.join('\n')).toContain(prefix)
    expect((await redrive('keys', 'revoke', prefix, ...target)).exitCode).toBe(0)
    expect(await status()).toBe(403)
  })
})
