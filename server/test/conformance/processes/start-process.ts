/**
 * Starts a script of this folder in its own process, to be killed or to compete with others.
 *
 * The process gets its task as a JSON argument, prints each report as one line of JSON (`{ kind: … }`), and
 * reads messages from its standard input. parent-channel.ts is its side of this protocol.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export type Report = Readonly<{ kind: string } & Record<string, unknown>>

export interface TestProcess {
  readonly process: ChildProcess
  /** All reports so far. */
  readonly reports: readonly Report[]
  /** Resolves with the first report of a kind, past or future; rejects if the process ends without one. */
  waitForReport(kind: string): Promise<Report>
  send(message: string): void
  /** Resolves with all reports when the process has ended. Rejects with its last errors if it failed. */
  waitForExit(): Promise<readonly Report[]>
  /** kill -9. Resolves with all reports when the process is gone and its output is read. */
  kill(): Promise<readonly Report[]>
}

export type Wrapper = readonly [command: string, ...args: string[]]

/** `wrapper`: a command that starts the process, for example with a limit. */
export function startTestProcess(script: string, task: object, wrapper: readonly string[] = []): TestProcess {
  const [command = process.execPath, ...args] = [
    ...wrapper,
    process.execPath,
    join(import.meta.dirname, `${script}.ts`),
    JSON.stringify(task),
  ]
  // Without the settings of the test runner, which would make the start slow.
  const { NODE_OPTIONS: _, VITEST: __, ...env } = process.env
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env })
  const reports: Report[] = []
  const waiting: { kind: string; resolve(report: Report): void; reject(error: Error): void }[] = []
  let stderrTail = ''
  child.stderr.on('data', (data: Buffer) => {
    stderrTail = (stderrTail + data.toString()).slice(-4_000)
  })
  // Writing to a process that is gone is not an error.
  child.stdin.on('error', () => {})

  const reader = createInterface({ input: child.stdout })
  reader.on('line', (text) => {
    // The last line of a killed process may be cut off.
    if (!text.endsWith('}')) return
    const report = JSON.parse(text) as Report
    reports.push(report)
    for (const wait of waiting.filter(({ kind }) => kind === report.kind)) wait.resolve(report)
  })
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`cannot be started: ${error.message}`))
    child.once('close', (code, signal) => resolve(signal ?? `exit ${code}`))
  })
  const failure = (how: string): Error => new Error(`${script} ended with ${how}; its stderr: ${stderrTail}`)
  void exited.then((how) => {
    for (const wait of waiting) wait.reject(failure(how))
  })

  return {
    process: child,
    reports,
    waitForReport: (kind) => {
      const past = reports.find((report) => report.kind === kind)
      if (past !== undefined) return Promise.resolve(past)
      return new Promise((resolve, reject) => waiting.push({ kind, resolve, reject }))
    },
    send: (message) => child.stdin.write(`${message}\n`),
    waitForExit: async () => {
      const how = await exited
      if (how !== 'exit 0') throw failure(how)
      return reports
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
      return reports
    },
  }
}
