import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino'
import { build as prettyStream } from 'pino-pretty'

export type { Logger }

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export type LogOptions = Readonly<{
  level: LogLevel
  /** For people: colours and short lines instead of JSON. Default: whether stdout is a terminal. */
  isPretty?: boolean
  destination?: DestinationStream
}>

/** What must never reach a log, wherever in an entry it stands. */
const secretPaths = [
  'password',
  'token',
  'authorization',
  'headers.authorization',
  'headers.cookie',
  '*.password',
  '*.token',
]

/** One JSON object per line on stdout: `level` as a word, `time` in ISO 8601, `msg` for people. */
export function createLogger(options: LogOptions): Logger {
  const settings: LoggerOptions = {
    level: options.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: secretPaths, censor: '***' },
  }
  const isPretty = options.isPretty ?? process.stdout.isTTY === true
  if (!isPretty) return options.destination ? pino(settings, options.destination) : pino(settings)
  // In this thread and synchronous: the last lines before an exit are the ones people need.
  const stream = prettyStream({
    sync: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ...(options.destination && { destination: options.destination }),
  })
  return pino(settings, stream)
}
