/** Reports a clock of this machine that differs from the clock of the store. */
import { usPerMs, usPerSecond } from '../../core/time/instant.ts'
import type { Logger } from '../log/log.ts'
import type { Component } from './health.ts'

export interface ClockSkew {
  /** How far the clock of this machine is ahead, in seconds; null if the store has no clock. */
  readOffsetSeconds(): number | null
  /** The finding for the health report: the server works, because it goes by the clock of the store. */
  state(): Component
  /** Logs when the difference becomes too large, and when it is small again. */
  pass(): void
}

export function createClockSkew(
  parts: Readonly<{
    /** Undefined while the store was never open. */
    readOffsetUs(): number | null | undefined
    offsetMsMax: number
    log: Logger
    now?: () => Date
  }>,
): ClockSkew {
  const { readOffsetUs, offsetMsMax, log, now = () => new Date() } = parts
  let isLogged = false
  const readOffsetSeconds = (): number | null => {
    const offsetUs = readOffsetUs() ?? null
    return offsetUs === null ? null : offsetUs / usPerSecond
  }
  /** Null: the clock is right. */
  const describe = (): string | null => {
    const seconds = readOffsetSeconds()
    if (seconds === null || Math.abs(seconds) * usPerSecond <= offsetMsMax * usPerMs) return null
    const text = Math.abs(seconds).toFixed(1)
    const direction = seconds > 0 ? 'ahead of' : 'behind'
    return `the clock of this machine is ${text} s ${direction} the clock of the database`
  }
  return {
    readOffsetSeconds,
    state: () => {
      const reason = describe()
      return { isUp: true, isDegraded: reason !== null, reason, checkedAt: now() }
    },
    pass: () => {
      const reason = describe()
      if (reason !== null && !isLogged)
        log.warn(
          { offset_seconds: readOffsetSeconds() },
          `${reason}; the server goes by the clock of the database`,
        )
      if (reason === null && isLogged) log.info('the clock of this machine is right again')
      isLogged = reason !== null
    },
  }
}
