import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino'
import { prettyFactory } from 'pino-pretty'
import { getStandardOutput } from './log-output.ts'

export type { Logger }

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export type LogOptions = Readonly<{
  level: LogLevel
  /** Coloured short lines for people instead of JSON. Default: true if stdout is a terminal. */
  isPretty?: boolean
  destination?: DestinationStream
}>

/** Fields that are replaced in every log entry. */
const secretPaths = [
  'password',
  'token',
  'authorization',
  'headers.authorization',
  'headers.cookie',
  '*.password',
  '*.token',
]

/** Writes one JSON object per line to stdout: `level` as a word, `time` in ISO 8601, `msg` for people. */
export function createLogger(options: LogOptions): Logger {
  const settings: LoggerOptions = {
    level: options.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: secretPaths, censor: '***' },
  }
  const isPretty = options.isPretty ?? process.stdout.isTTY === true
  const destination = options.destination ?? getStandardOutput()
  if (!isPretty) return pino(settings, destination)
  const pretty = prettyFactory({ translateTime: 'SYS:HH:MM:ss.l' })
  return pino(settings, { write: (line) => destination.write(pretty(line)) })
}
