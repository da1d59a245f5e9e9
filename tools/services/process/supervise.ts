import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatLastLines } from './run-command.ts'
import type { User } from './unprivileged-user.ts'

export type ServiceProcess = Readonly<{
  command: string
  args: readonly string[]
  env: NodeJS.ProcessEnv
  user?: User | undefined
  logFile: string
  /** The signal for a normal end of the service. */
  stopSignal: NodeJS.Signals
}>

export type ToWatchdog = { do: 'start'; process: ServiceProcess } | { do: 'stop'; signal: NodeJS.Signals }
/** The service ended, on request or on its own. */
export type FromWatchdog = { exited: string }

/** A temporary folder and at most one service that runs in it. Both are removed when this process ends. */
export interface Supervised extends AsyncDisposable {
  readonly folder: string
  /** Resolves when `isReady` resolves. Throws with the service's last lines of output otherwise. */
  start(process: ServiceProcess, isReady: () => Promise<void>, msMax: number): Promise<void>
  /** Stops the service and keeps the folder, so that the service can be started again. */
  stop(signal: NodeJS.Signals): Promise<void>
  /** Stops the service and removes the folder. Can be called twice. */
  end(): Promise<void>
}

/** watchdog.ts describes how the service and the folder are removed even if this process is killed. */
export async function supervise(name: string): Promise<Supervised> {
  const folder = await mkdtemp(join(tmpdir(), `redrive-${name}-`))
  // The service may run as another user, who must be able to enter the folder.
  await chmod(folder, 0o711)
  const watchdog = fork(join(import.meta.dirname, 'watchdog.ts'), [folder], {
    // Its own process group, so that Ctrl-C does not end it before it has cleaned up. Node options of a test
    // runner are not inherited.
    detached: true,
    execArgv: [],
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const gone = new Promise<string>((resolve) => watchdog.once('exit', () => resolve('lost its watchdog')))
  let exited: Promise<string> = Promise.resolve('was never started')
  letExit(watchdog)

  const end = async (): Promise<void> => {
    if (watchdog.connected) watchdog.disconnect()
    watchdog.ref()
    await gone
  }
  return {
    folder,
    async start(wanted, isReady, msMax) {
      keepAlive(watchdog)
      try {
        exited = Promise.race([gone, waitForExit(watchdog)])
        send(watchdog, { do: 'start', process: wanted })
        const failure = await waitUntilReady(isReady, exited, msMax)
        if (failure !== undefined) {
          throw new Error(`${name} ${failure}${formatLastLines(await readLog(wanted.logFile))}`)
        }
      } finally {
        letExit(watchdog)
      }
    },
    async stop(signal) {
      keepAlive(watchdog)
      send(watchdog, { do: 'stop', signal })
      await exited
      letExit(watchdog)
    },
    end,
    [Symbol.asyncDispose]: end,
  }
}

/** Returns why the service did not become ready, or undefined when it is ready. */
async function waitUntilReady(
  isReady: () => Promise<void>,
  exited: Promise<string>,
  msMax: number,
): Promise<string | undefined> {
  let ending: string | undefined
  const ended = exited.then((how) => {
    ending = how
  })
  const deadline = Date.now() + msMax
  for (;;) {
    const failure = await Promise.race([ended, isReady().then(() => undefined, String)])
    if (ending !== undefined || failure === undefined) return ending
    if (Date.now() > deadline) return `was not ready after ${msMax} ms: ${failure}`
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
}

async function waitForExit(watchdog: ChildProcess): Promise<string> {
  const [message] = (await once(watchdog, 'message')) as [FromWatchdog]
  return message.exited
}

function send(watchdog: ChildProcess, message: ToWatchdog): void {
  if (!watchdog.connected) throw new Error('the service has ended; start a new one')
  watchdog.send(message)
}

// A script that does not stop its services must still be able to exit, so the watchdog keeps the event loop
// alive only while an answer is awaited.
function keepAlive(watchdog: ChildProcess): void {
  watchdog.ref()
  watchdog.channel?.ref()
}

function letExit(watchdog: ChildProcess): void {
  watchdog.unref()
  watchdog.channel?.unref()
}

async function readLog(path: string): Promise<string> {
  // A service that fails early may not have written a log.
  return readFile(path, 'utf8').catch(() => '')
}
