/**
 * A program that runs one service for its parent process, and outlives the parent just long enough to clean
 * up.
 *
 * An IPC channel connects both. When the parent ends for any reason, the kernel closes the channel; the
 * watchdog then stops the service, removes its folder and exits. Even `kill -9` of a test run leaves no
 * processes and no data.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { FromWatchdog, ServiceProcess, ToWatchdog } from './supervise.ts'

const folder = process.argv[2] as string
const stopMsMax = 10_000

let service: ChildProcess | undefined
let stopSignal: NodeJS.Signals = 'SIGTERM'

process.on('message', (message: ToWatchdog) => {
  if (message.do === 'start') start(message.process)
  else void stop(message.signal)
})
process.once('disconnect', async () => {
  await stop(stopSignal)
  // Child processes of the service may write for a moment longer.
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  process.exit(0)
})
// Ctrl-C reaches every process of the terminal; only the parent decides when the service ends, by closing the
// channel.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})
process.once('SIGTERM', () => process.disconnect())

function start(wanted: ServiceProcess): void {
  const log = openSync(wanted.logFile, 'a')
  stopSignal = wanted.stopSignal
  const child = spawn(wanted.command, wanted.args, {
    cwd: folder,
    env: wanted.env,
    stdio: ['ignore', log, log],
    ...(wanted.user && { uid: wanted.user.uid, gid: wanted.user.gid }),
  })
  service = child
  const ended = (how: string): void => {
    service = undefined
    notifyParent({ exited: how })
  }
  child.once('error', (error) => ended(error.message))
  child.once('exit', (code, signal) => ended(`ended with ${signal ?? `code ${code}`}`))
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  const child = service
  if (child === undefined) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
  await exited
  clearTimeout(timer)
}

function notifyParent(message: FromWatchdog): void {
  // The parent may have ended; then there is no receiver.
  if (process.connected) process.send?.(message, () => {})
}
