import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { createClient } from '../../../client/src/index.ts'
import { startTestServer } from '../http/test-server.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-docs-'))
afterEach(() => rmSync(folder, { recursive: true }))

const fromHere = (path: string) => fileURLToPath(new URL(path, import.meta.url))

describe('the example in the client documentation', () => {
  it('the example in the client documentation processes an item and ends with code 0 on SIGTERM', async () => {
    const { url } = await startTestServer()
    const page = readFileSync(fromHere('../../../docs/client.md'), 'utf8')
    const example = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
    expect(example.trim().split('\n').length).toBeLessThanOrEqual(10)
    const program = join(folder, 'example.mts')
    writeFileSync(
      program,
      example
        .replace("'@redrive/client'", JSON.stringify(fromHere('../../../client/src/index.ts')))
        .replace('http://127.0.0.1:8080', url),
    )
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [printed] = await once(child.stdout, 'data')
    expect(String(printed)).toBe('sending to ada@example.com\n')
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    const { counts, policy } = await createClient({ url }).getQueue('emails')
    expect(counts).toMatchObject({ completed: 1, leased: 0, waiting: 0 })
    // An item that fails neither occupies its workers all the time nor is it lost.
    expect(policy).toMatchObject({
      attemptsMax: 10,
      retry: { kind: 'exponential', delays: ['1s', '5m0s'] },
      deadQueue: 'emails-dead',
    })
  })
})
