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
  /** The number of this process, if several serve one port. It is part of every line. */
  processNumber?: number
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
    base: options.processNumber === undefined ? null : { process: options.processNumber },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: secretPaths, censor: '***' },
  }
  const isPretty = options.isPretty ?? process.stdout.isTTY === true
  const destination = options.destination ?? getStandardOutput()
  if (!isPretty) return pino(settings, destination)
  const pretty = prettyFactory({
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: (log, messageKey) => escapeControls(String(log[messageKey] ?? '')),
  })
  return pino(settings, { write: (line) => destination.write(pretty(line)) })
}

/** A text from a request must not look like further log lines, or move the cursor of the terminal. */
function escapeControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) =>
    character === '\n' ? '\\n' : toUnicodeEscape(character),
  )
}

function toUnicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
