import cluster from 'node:cluster'
import type { LoadedSettings } from '../config/settings/load-settings.ts'
import type { Settings } from '../config/settings/settings.ts'
import { maskStore } from '../config/store/store-text.ts'
import { KnownError } from '../errors.ts'
import { createLogger, type Logger, type LogOptions } from '../ops/log/log.ts'
import { getStandardOutput } from '../ops/log/log-output.ts'
import { startServer } from '../server.ts'
import type { StoreTarget } from '../storage/open-storage.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { openTarget } from './open-target.ts'
import {
  processNumberVariable,
  processTerminalVariable,
  startServerProcess,
} from './processes/server-process.ts'
import { supervise } from './processes/supervise.ts'
import { createSupervised, listenForSupervisedStop, type Supervised } from './processes/supervised.ts'
import { listenForStop, type StopSignal } from './stop-signals.ts'

/** The supervisor waits this much longer than the limit of a stop before it kills a process. */
const killAfterMs = 10_000

/** Runs the server until it is asked to stop. */
export async function serve({ settings }: LoadedSettings, context: Context): Promise<number> {
  if (cluster.isWorker) return serveSupervised(settings, context)
  // Listen before the start: a signal during a slow start must stop the server too.
  const signals = listenForStop(process, (exitCode) => process.exit(exitCode))
  try {
    if (settings.processes > 1) return await serveWithProcesses(signals.first, settings, context)
    return await serveUntil(signals.first, settings, context, createServerLogger(settings))
  } finally {
    signals.release()
  }
}

function serveWithProcesses(
  stopRequested: Promise<StopSignal>,
  settings: Settings,
  context: Context,
): Promise<number> {
  const log = createServerLogger(settings)
  const output = getStandardOutput()
  const count = settings.processes
  return supervise({
    count,
    startProcess: startServerProcess,
    stopRequested,
    onServing: (url) =>
      context.report(
        `redrive is listening on ${url}, store ${maskStore(settings.store)}, with ${count} processes`,
      ),
    onLine: (stream, line) => (stream === 'stdout' ? output.write(`${line}\n`) : context.report(line)),
    warn: (fields, sentence) => log.warn(fields, sentence),
    stopMsMax: settings['stop.timeout'] + killAfterMs,
  })
}

/** Runs one of several processes that serve one port. */
async function serveSupervised(settings: Settings, context: Context): Promise<number> {
  const signals = listenForSupervisedStop(process)
  const supervised = createSupervised(process)
  const log = createServerLogger(settings, {
    processNumber: Number(context.environment[processNumberVariable]),
    isPretty: context.environment[processTerminalVariable] === '1',
  })
  try {
    return await serveUntil(signals.first, shareLimits(settings), context, log, supervised)
  } finally {
    supervised.close()
    signals.release()
  }
}

/** Limits of connections are settings of the whole server. Each process gets its share. */
function shareLimits(settings: Settings): Settings {
  const share = (max: number, min: number): number => Math.max(min, Math.floor(max / settings.processes))
  return {
    ...settings,
    'postgres.connections_max': share(settings['postgres.connections_max'], 2),
    'http.connections_max': share(settings['http.connections_max'], 1),
  }
}

async function serveUntil(
  stopRequested: Promise<StopSignal>,
  settings: Settings,
  context: Context,
  log: Logger,
  supervised?: Supervised,
): Promise<number> {
  const opened = await openTarget(settings, context, (level, sentence) => log[level](sentence))
  try {
    if (supervised !== undefined) requireShareable(settings, opened.target)
    warnIfNotDurable(settings, opened.target, log)
    const secret = settings['webhooks.gateway_secret']
    const server = await startServer({
      settings: {
        ...settings,
        'webhooks.gateway_secret': secret && (await opened.readSecret(secret)),
      },
      store: opened.target,
      readSecret: opened.readSecret,
      log,
      onFirstKey: (key) => context.report(describeFirstKey(key)),
      ...(supervised !== undefined && { collectReports: supervised.collectMetrics }),
    })
    if (supervised === undefined) {
      context.report(`redrive is listening on ${server.url}, store ${maskStore(settings.store)}`)
    } else {
      supervised.reportMetrics(server.reportMetrics)
      supervised.reportServing(server.url)
    }
    const signal = await stopRequested
    const timeoutMs = settings['stop.timeout']
    log.info(
      { signal, timeout_ms: timeoutMs },
      'stopping: refusing new requests, waiting for requests in progress',
    )
    await server.stop(timeoutMs)
    return exitCodes.ok
  } finally {
    await opened.close()
  }
}

/** Only on the terminal: the log may be collected and kept. */
function describeFirstKey(key: string): string {
  return [
    'access control is on. The user admin has this key, which is shown only once:',
    '',
    `    ${key}`,
    '',
    'Keep it safe. To create another one on this machine: redrive keys create --user admin',
  ].join('\n')
}

/** Refuses settings that several processes cannot share. */
function requireShareable(settings: Settings, target: StoreTarget): void {
  if (target.kind !== 'postgres') {
    throw new KnownError(
      'PROCESSES_REFUSED',
      `processes is ${settings.processes}, but only a PostgreSQL store can be shared by several processes`,
    )
  }
  if (settings['test.hooks']) {
    throw new KnownError(
      'PROCESSES_REFUSED',
      `processes is ${settings.processes}, but test.hooks set the clock of one process only`,
    )
  }
}

function warnIfNotDurable(settings: Settings, target: StoreTarget, log: Logger): void {
  if (target.kind === 'memory') {
    log.warn('NOT DURABLE: the store is :memory:; all its data is lost when the server stops')
  }
  if (target.kind !== 'sqlite' || settings['sqlite.synchronous'] === 'full') return
  log.warn(
    'NOT DURABLE: sqlite.synchronous is normal-may-lose-last-commits; a power failure can lose acknowledged items',
  )
}

function createServerLogger(
  settings: Settings,
  defaults: Pick<LogOptions, 'processNumber' | 'isPretty'> = {},
): Logger {
  const format = settings['log.format']
  return createLogger({
    ...defaults,
    level: settings['log.level'],
    ...(format !== 'auto' && { isPretty: format === 'pretty' }),
  })
}
