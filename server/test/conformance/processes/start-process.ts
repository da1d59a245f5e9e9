/**
 * Starts a script of this folder in a process of its own, to be killed or to compete.
 *
 * It is given its task as JSON, says each thing as one line of JSON (`{ is: … }`), and hears words on
 * its standard input.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export type Report = Readonly<{ is: string } & Record<string, unknown>>

export interface TestProcess {
  readonly process: ChildProcess
  /** Everything it has said so far. */
  readonly reports: readonly Report[]
  /** Resolves with the first line of that kind, said already or yet to come; rejects if it ends without. */
  waitForReport(is: string): Promise<Report>
  send(word: string): void
  /** All lines that it printed, once it has ended normally. Rejects with its last lines if it failed. */
  waitForExit(): Promise<readonly Report[]>
  /** kill -9. Resolves with all it said, once it is gone and its last line is read. */
  kill(): Promise<readonly Report[]>
}

export type Wrapper = readonly [command: string, ...args: string[]]

/** `wrapper`: a command that runs the one given to it, e.g. under a limit. */
export function startTestProcess(script: string, task: object, wrapper: readonly string[] = []): TestProcess {
  const [command = process.execPath, ...args] = [
    ...wrapper,
    process.execPath,
    join(import.meta.dirname, `${script}.ts`),
    JSON.stringify(task),
  ]
  // None of the test runner's own settings: they would make it slow to start.
  const { NODE_OPTIONS: _, VITEST: __, ...env } = process.env
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env })
  const reports: Report[] = []
  const waiting: { is: string; resolve(line: Report): void; reject(error: Error): void }[] = []
  let words = ''
  child.stderr.on('data', (data: Buffer) => {
    words = (words + data.toString()).slice(-4_000)
  })
  // A child that is gone hears nothing, which is no failure of ours.
  child.stdin.on('error', () => {})

  const reader = createInterface({ input: child.stdout })
  reader.on('line', (text) => {
    // The last line of a killed process may be cut off.
    if (!text.endsWith('}')) return
    const line = JSON.parse(text) as Report
    reports.push(line)
    for (const wait of waiting.filter((each) => each.is === line.is)) wait.resolve(line)
  })
  const gone = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`cannot be started: ${error.message}`))
    child.once('close', (code, signal) => resolve(signal ?? `exit ${code}`))
  })
  const failure = (how: string): Error => new Error(`${script} ended with ${how}; it said: ${words}`)
  void gone.then((how) => {
    for (const wait of waiting) wait.reject(failure(how))
  })

  return {
    process: child,
    reports,
    waitForReport: (is) => {
      const said = reports.find((line) => line.is === is)
      if (said !== undefined) return Promise.resolve(said)
      return new Promise((resolve, reject) => waiting.push({ is, resolve, reject }))
    },
    send: (word) => child.stdin.write(`${word}\n`),
    waitForExit: async () => {
      const how = await gone
      if (how !== 'exit 0') throw failure(how)
      return reports
    },
    kill: async () => {
      child.kill('SIGKILL')
      await gone
      return reports
    },
  }
}
