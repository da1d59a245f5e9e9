import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach } from 'vitest'
import type { StoreTarget } from '../../src/storage/open-storage.ts'
import type { LogLine } from './test-server.ts'

/** A server in its own process, as operators run it, so that a test can kill it or measure its memory. */
export interface ServerProcess {
  readonly url: string
  /** The log lines received from its stdout. */
  readonly lines: readonly LogLine[]
  hasEnded(): boolean
  /** The last 4,000 characters that it wrote to stderr. */
  stderrEnd(): string
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>
}

const started: ServerProcess[] = []

/** `more`: further options of `redrive serve`. */
export async function startServerProcess(
  store: StoreTarget,
  more: readonly string[] = [],
): Promise<ServerProcess> {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const args = [
    main,
    'serve',
    '--port',
    '0',
    '--store',
    storeArgument(store),
    '--log-format',
    'json',
    ...more,
  ]
  // Leave out the settings of the test run: the server would refuse them, or start slowly.
  const belongsToTestRun = (name: string) => /^(REDRIVE_|NODE_OPTIONS$|VITEST)/.test(name)
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !belongsToTestRun(name)))
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let stderr = ''
  child.stderr.on('data', (data: Buffer) => {
    stderr = (stderr + data.toString()).slice(-4_000)
  })
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  const lines: LogLine[] = []
  const url = await new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) =>
      reject(new Error(`the server ended with code ${code} before it was up: ${stderr}`)),
    )
    createInterface({ input: child.stdout }).on('line', (text) => {
      // The server also prints lines for people, which are not JSON.
      if (!text.startsWith('{')) return
      const line = JSON.parse(text) as LogLine
      lines.push(line)
      if (line.msg === 'redrive is up') resolve(String(line.url))
    })
  })
  const server: ServerProcess = {
    url,
    lines,
    hasEnded,
    stderrEnd: () => stderr,
    kill: async () => {
      if (hasEnded()) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
  started.push(server)
  return server
}

function storeArgument(store: StoreTarget): string {
  switch (store.kind) {
    case 'memory':
      return ':memory:'
    case 'sqlite':
      return store.path
    case 'postgres':
      return store.url
  }
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.kill()))
})
