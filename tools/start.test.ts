import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { repository } from './run-program.ts'

type Started = Readonly<{ child: ChildProcessWithoutNullStreams; ended: Promise<unknown[]>; told(): string }>

const children: Started[] = []
afterEach(() => {
  for (const { child } of children.splice(0)) child.kill('SIGKILL')
})

/** `npm start -- …args`, as npm runs it. */
function start(...args: string[]): Started {
  const child = spawn(process.execPath, [join(repository, 'tools/start.ts'), ...args], { cwd: repository })
  let told = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    told += text
  })
  child.stdout.resume()
  const started = { child, ended: once(child, 'exit'), told: () => told }
  children.push(started)
  return started
}

async function urlOf({ child, ended, told }: Started): Promise<string> {
  for (;;) {
    const url = /listening on (http:\S+?),?\s/.exec(told())?.[1]
    if (url !== undefined) return url
    const [code] = await Promise.race([once(child.stderr, 'data'), ended])
    if (typeof code === 'number') throw new Error(`ended with ${code}: ${told()}`)
  }
}

describe('npm start', () => {
  it('builds what is stale, serves the built dashboard, and ends well on SIGTERM', async () => {
    const started = start('--port', '0', '--store', ':memory:')
    const url = await urlOf(started)
    expect(await (await fetch(url)).text()).toContain('/assets/index-')
    expect((await fetch(`${url}/health`)).status).toBe(200)
    started.child.kill('SIGTERM')
    expect(await started.ended).toEqual([0, null])
  }, 180_000)

  it("passes the user's own arguments on, and the exit code back", async () => {
    const { ended, told } = start('--port', 'high')
    expect(await ended).toEqual([2, null])
    expect(told()).toContain('high')
  }, 180_000)
})
