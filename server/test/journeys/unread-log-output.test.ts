import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'

type Child = ChildProcessByStdio<null, Readable, Readable>

const started: Child[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

/** Starts a server with piped output, as `redrive serve | logger` does, and reads until it is up. */
async function startServer(...flags: readonly string[]): Promise<{ child: Child; url: string }> {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const belongsToTestRun = (name: string) => /^(REDRIVE_|NODE_OPTIONS$|VITEST)/.test(name)
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !belongsToTestRun(name)))
  const args = [main, 'serve', '--port', '0', '--store', ':memory:', ...flags]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  started.push(child)
  let printed = ''
  for await (const data of child.stdout.iterator({ destroyOnReturn: false })) {
    printed += data
    const url = /"url":"([^"]+)"/.exec(printed)?.[1]
    if (url !== undefined && printed.includes('redrive is up')) return { child, url }
  }
  throw new Error(`the server ended before it was up: ${printed}`)
}

/** Sends SIGTERM and returns the exit code. */
async function stop(child: Child): Promise<number | null> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const [code] = await ended
  return code as number | null
}

describe('a server whose log is not read', () => {
  it('a server keeps serving and stops with code 0 after its log pipe was closed', async () => {
    const { child, url } = await startServer('--log-level', 'debug')
    child.stdout.destroy()
    child.stderr.destroy()
    for (let count = 0; count < 20; count++) expect((await fetch(`${url}/api/v1/info`)).status).toBe(200)
    expect(await stop(child)).toBe(0)
  })

  it('a server stops with code 0 when its log pipe is closed immediately before the stop', async () => {
    const { child } = await startServer()
    child.stdout.destroy()
    expect(await stop(child)).toBe(0)
  })

  it('a server keeps serving and stops with code 0 when its log pipe is full', async () => {
    const { child, url } = await startServer('--log-level', 'debug')
    child.stdout.pause()
    // The log lines for these paths exceed the capacity of a pipe.
    const longName = 'x'.repeat(4_000)
    for (let count = 0; count < 1_000; count++) {
      const answer = await fetch(`${url}/api/v1/${longName}`)
      if (answer.status !== 404) throw new Error(await answer.text())
      await answer.arrayBuffer()
    }
    expect(await stop(child)).toBe(0)
  }, 120_000)
})
