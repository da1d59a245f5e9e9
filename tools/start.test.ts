import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { repository } from './run-program.ts'

type Started = Readonly<{
  child: ChildProcessWithoutNullStreams
  ended: Promise<unknown[]>
  readErrors(): string
}>

const children: Started[] = []
afterEach(() => {
  for (const { child } of children.splice(0)) child.kill('SIGKILL')
})

/** Runs the program of `npm start -- …args`. */
function start(...args: string[]): Started {
  const child = spawn(process.execPath, [join(repository, 'tools/start.ts'), ...args], { cwd: repository })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  child.stdout.resume()
  const started = { child, ended: once(child, 'exit'), readErrors: () => errors }
  children.push(started)
  return started
}

async function waitForUrl({ child, ended, readErrors }: Started): Promise<string> {
  for (;;) {
    const url = /listening on (http:\S+?),?\s/.exec(readErrors())?.[1]
    if (url !== undefined) return url
    const [code] = await Promise.race([once(child.stderr, 'data'), ended])
    if (typeof code === 'number') throw new Error(`the server ended with ${code}: ${readErrors()}`)
  }
}

describe('npm start', () => {
  it('npm start builds outdated parts, serves the dashboard, and exits with 0 on SIGTERM', async () => {
    const started = start('--port', '0', '--store', ':memory:')
    const url = await waitForUrl(started)
    expect(await (await fetch(url)).text()).toContain('/assets/index-')
    expect((await fetch(`${url}/health`)).status).toBe(200)
    started.child.kill('SIGTERM')
    expect(await started.ended).toEqual([0, null])
  }, 180_000)

  it('npm start passes its arguments to the server, and returns the exit code of the server', async () => {
    const { ended, readErrors } = start('--port', 'high')
    expect(await ended).toEqual([2, null])
    expect(readErrors()).toContain('high')
  }, 180_000)
})
