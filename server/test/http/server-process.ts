import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach } from 'vitest'
import type { StoreTarget } from '../../src/storage/open-storage.ts'
import type { LogLine } from './test-server.ts'

/** The server as operators run it, in a process of its own: to be killed, or to be weighed. */
export interface ServerProcess {
  readonly url: string
  /** Its log, as far as it was said on stdout. */
  readonly lines: readonly LogLine[]
  hasEnded(): boolean
  /** The end of what it said on stderr. */
  lastWords(): string
  /** kill -9. Resolves when it is gone. */
  kill(): Promise<void>
}

const started: ServerProcess[] = []

export async function startServerProcess(store: StoreTarget): Promise<ServerProcess> {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const args = [main, 'serve', '--port', '0', '--store', storeText(store), '--log-format', 'json']
  // None of the tests' own settings: the server would refuse them, or be slow to start.
  const isOfTests = (name: string) => /^(REDRIVE_|NODE_OPTIONS$|VITEST)/.test(name)
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOfTests(name)))
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let words = ''
  child.stderr.on('data', (data: Buffer) => {
    words = (words + data.toString()).slice(-4_000)
  })
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  const lines: LogLine[] = []
  const url = await new Promise<string>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) =>
      reject(new Error(`the server ended with ${code} before it was up: ${words}`)),
    )
    createInterface({ input: child.stdout }).on('line', (text) => {
      // It also says a word to people.
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
    lastWords: () => words,
    kill: async () => {
      if (hasEnded()) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
  started.push(server)
  return server
}

function storeText(store: StoreTarget): string {
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
