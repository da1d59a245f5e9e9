import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lastWords } from './run-command.ts'
import type { User } from './unprivileged-user.ts'

export type ServiceProcess = Readonly<{
  command: string
  args: readonly string[]
  env: NodeJS.ProcessEnv
  user?: User | undefined
  logFile: string
  /** Asks the service to end in its usual way. */
  stopSignal: NodeJS.Signals
}>

export type ToWatchdog = { do: 'start'; process: ServiceProcess } | { do: 'stop'; signal: NodeJS.Signals }
/** The service ended, by itself or because it was told to. */
export type FromWatchdog = { exited: string }

/** A folder under the OS's temporary one, and at most one running service in it. Both end with us. */
export interface Supervised extends AsyncDisposable {
  readonly folder: string
  /** Resolves once `isReady` does without throwing. Throws with the service's last words otherwise. */
  start(process: ServiceProcess, isReady: () => Promise<void>, msMax: number): Promise<void>
  /** Ends the service and keeps the folder, so that it can be started again. */
  stop(signal: NodeJS.Signals): Promise<void>
  /** Ends the service and removes the folder. Safe twice. */
  end(): Promise<void>
}

/** See watchdog.ts for how the service and the folder are kept from outliving this process. */
export async function supervise(name: string): Promise<Supervised> {
  const folder = await mkdtemp(join(tmpdir(), `redrive-${name}-`))
  // A service may run as another user, who must be able to pass through.
  await chmod(folder, 0o711)
  const watchdog = fork(join(import.meta.dirname, 'watchdog.ts'), [folder], {
    // Its own process group, so that Ctrl-C does not end it before it has cleaned up; and none of a
    // test runner's own Node options.
    detached: true,
    execArgv: [],
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const gone = new Promise<string>((resolve) => watchdog.once('exit', () => resolve('lost its watchdog')))
  let exited: Promise<string> = Promise.resolve('was never started')
  release(watchdog)

  const end = async (): Promise<void> => {
    if (watchdog.connected) watchdog.disconnect()
    watchdog.ref()
    await gone
  }
  return {
    folder,
    async start(wanted, isReady, msMax) {
      hold(watchdog)
      try {
        exited = Promise.race([gone, exitOf(watchdog)])
        send(watchdog, { do: 'start', process: wanted })
        const failure = await untilReady(isReady, exited, msMax)
        if (failure !== undefined) {
          throw new Error(`${name} ${failure}${lastWords(await readLog(wanted.logFile))}`)
        }
      } finally {
        release(watchdog)
      }
    },
    async stop(signal) {
      hold(watchdog)
      send(watchdog, { do: 'stop', signal })
      await exited
      release(watchdog)
    },
    end,
    [Symbol.asyncDispose]: end,
  }
}

/** Gives why the service will never be ready, or undefined once it is. */
async function untilReady(
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

async function exitOf(watchdog: ChildProcess): Promise<string> {
  const [message] = (await once(watchdog, 'message')) as [FromWatchdog]
  return message.exited
}

function send(watchdog: ChildProcess, message: ToWatchdog): void {
  if (!watchdog.connected) throw new Error('this service was ended: bring up another')
  watchdog.send(message)
}

// A script that forgets to stop its services must still be able to end, so the watchdog keeps the
// event loop alive only while we wait for an answer.
function hold(watchdog: ChildProcess): void {
  watchdog.ref()
  watchdog.channel?.ref()
}

function release(watchdog: ChildProcess): void {
  watchdog.unref()
  watchdog.channel?.unref()
}

async function readLog(path: string): Promise<string> {
  // A service that fails early may not have written one.
  return readFile(path, 'utf8').catch(() => '')
}
