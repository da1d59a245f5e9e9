import cluster, { type Worker } from 'node:cluster'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { ToProcess, ToSupervisor } from './messages.ts'

/** How a process ended. */
export type ProcessEnd = Readonly<{ code: number | null; signal: string | null }>

/** A process of the server, as its supervisor sees it. */
export type ServerProcess = Readonly<{
  number: number
  pid: number
  send(message: ToProcess): void
  kill(): void
}>

export type ProcessListeners = Readonly<{
  onMessage(message: ToSupervisor): void
  onEnd(end: ProcessEnd): void
  onLine(stream: 'stdout' | 'stderr', line: string): void
}>

export type StartProcess = (number: number, listeners: ProcessListeners) => ServerProcess

/** Set by the supervisor only: the number of the process. Variables that begin with REDRIVE_ are settings. */
export const processNumberVariable = 'SUPERVISED_REDRIVE_PROCESS'
/** Set by the supervisor only, if its output is a terminal. The output of the process is always a pipe. */
export const processTerminalVariable = 'SUPERVISED_REDRIVE_TERMINAL'

/**
 * Starts the same command again as a process that shares the port. The output is read line by line, so that
 * the lines of several processes do not mix.
 */
export const startServerProcess: StartProcess = (number, { onMessage, onEnd, onLine }) => {
  cluster.setupPrimary({ silent: true })
  const worker: Worker = cluster.fork({
    [processNumberVariable]: String(number),
    ...(process.stdout.isTTY && { [processTerminalVariable]: '1' }),
  })
  const streams = [
    forwardLines(worker.process.stdout, (line) => onLine('stdout', line)),
    forwardLines(worker.process.stderr, (line) => onLine('stderr', line)),
  ]
  worker.on('message', (message: ToSupervisor) => onMessage(message))
  // Without a listener an error of the channel would end the supervisor. The end of the process follows.
  worker.on('error', () => undefined)
  worker.once('exit', (code, signal) => {
    void Promise.all(streams).then(() => onEnd({ code, signal }))
  })
  return {
    number,
    pid: worker.process.pid ?? 0,
    send: (message) => {
      if (worker.isConnected()) worker.send(message, () => undefined)
    },
    kill: () => worker.process.kill('SIGKILL'),
  }
}

function forwardLines(stream: Readable | null, onLine: (line: string) => void): Promise<void> {
  if (stream === null) return Promise.resolve()
  const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })
  lines.on('line', onLine)
  return new Promise((resolve) => lines.once('close', resolve))
}
