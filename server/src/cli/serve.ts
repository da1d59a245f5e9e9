import type { LoadedSettings } from '../config/load-settings.ts'
import type { Settings } from '../config/settings.ts'
import { maskStore } from '../config/store-text.ts'
import { createLogger, type Logger } from '../ops/log.ts'
import { startServer } from '../server.ts'
import type { StoreTarget } from '../storage/open-storage.ts'
import type { Context } from './context.ts'
import { exitCodes } from './exit-codes.ts'
import { openTarget } from './open-target.ts'
import { listenForStop, type StopSignal } from './stop-signals.ts'

/** Runs the server until it is asked to stop. */
export async function serve({ settings }: LoadedSettings, context: Context): Promise<number> {
  const log = createServerLogger(settings)
  // Listen before the start: a signal during a slow start must stop the server too.
  const signals = listenForStop(process, (exitCode) => process.exit(exitCode))
  try {
    return await serveUntil(signals.first, settings, context, log)
  } finally {
    signals.release()
  }
}

async function serveUntil(
  stopRequested: Promise<StopSignal>,
  settings: Settings,
  context: Context,
  log: Logger,
): Promise<number> {
  const opened = await openTarget(settings, context, (level, sentence) => log[level](sentence))
  try {
    warnIfNotDurable(settings, opened.target, log)
    const server = await startServer({ settings, store: opened.target, log })
    context.report(`redrive is listening on ${server.url}, store ${maskStore(settings.store)}`)
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

function warnIfNotDurable(settings: Settings, target: StoreTarget, log: Logger): void {
  if (target.kind === 'memory') {
    log.warn('NOT DURABLE: the store is :memory:; all its data is lost when the server stops')
  }
  if (target.kind !== 'sqlite' || settings['sqlite.synchronous'] === 'full') return
  log.warn(
    'NOT DURABLE: sqlite.synchronous is normal-may-lose-last-commits; a power failure can lose acknowledged items',
  )
}

function createServerLogger(settings: Settings): Logger {
  const format = settings['log.format']
  const level = settings['log.level']
  return createLogger(format === 'auto' ? { level } : { level, isPretty: format === 'pretty' })
}
