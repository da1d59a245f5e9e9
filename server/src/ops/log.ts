import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino'
import { prettyFactory } from 'pino-pretty'
import { standardOutput } from './log-output.ts'

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
  const destination = options.destination ?? standardOutput()
  if (!isPretty) return pino(settings, destination)
  const pretty = prettyFactory({ translateTime: 'SYS:HH:MM:ss.l' })
  return pino(settings, { write: (line) => destination.write(pretty(line)) })
}
