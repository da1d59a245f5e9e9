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

/** A server as `redrive serve | somebody` starts it, once somebody has read that it is up. */
async function aServer(...flags: readonly string[]): Promise<{ child: Child; url: string }> {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const isOfTests = (name: string) => /^(REDRIVE_|NODE_OPTIONS$|VITEST)/.test(name)
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOfTests(name)))
  const args = [main, 'serve', '--port', '0', '--store', ':memory:', ...flags]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  started.push(child)
  let said = ''
  for await (const data of child.stdout.iterator({ destroyOnReturn: false })) {
    said += data
    const url = /"url":"([^"]+)"/.exec(said)?.[1]
    if (url !== undefined && said.includes('redrive is up')) return { child, url }
  }
  throw new Error(`the server ended before it was up: ${said}`)
}

/** Its exit code, and undefined when it does not end in time. */
async function stop(child: Child): Promise<number | undefined> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const late = new Promise<[undefined]>((resolve) => setTimeout(() => resolve([undefined]), 5_000).unref())
  const [code] = await Promise.race([ended, late])
  return code as number | undefined
}

describe('a server whose log nobody reads any more', () => {
  it('serves on and stops, though the reader is gone', async () => {
    const { child, url } = await aServer('--log-level', 'debug')
    child.stdout.destroy()
    child.stderr.destroy()
    for (let count = 0; count < 20; count++) expect((await fetch(`${url}/api/v1/info`)).status).toBe(200)
    expect(await stop(child)).toBe(0)
  })

  it('stops when the reader went just before, too', async () => {
    const { child } = await aServer()
    child.stdout.destroy()
    expect(await stop(child)).toBe(0)
  })

  it('serves on and stops, though the reader reads nothing', async () => {
    const { child, url } = await aServer('--log-level', 'debug')
    child.stdout.pause()
    // Far more than a pipe holds.
    const agent = 'x'.repeat(4_000)
    for (let count = 0; count < 1_000; count++) {
      const answer = await fetch(`${url}/api/v1/${agent}`)
      if (answer.status !== 404) throw new Error(await answer.text())
      await answer.arrayBuffer()
    }
    expect(await stop(child)).toBe(0)
  })
})
