import { describe, expect, it } from 'vitest'
import fc from '../../../../test/fast-check.ts'
import { createDatabaseClock } from './database-clock.ts'

const hourUs = 3_600_000_000
const start = 1_800_000_000_000_000

describe('createDatabaseClock', () => {
  /** A machine whose wall clock is an hour ahead, and a database. */
  const createClocks = () => {
    const time = { elapsedMs: 5_000, databaseAt: start, machineAt: start + hourUs }
    const pass = (ms: number) => {
      time.elapsedMs += ms
      time.databaseAt += ms * 1_000
      time.machineAt += ms * 1_000
    }
    const clock = createDatabaseClock({ now: () => time.machineAt }, () => time.elapsedMs)
    /** A measurement whose question and answer take this long. */
    const measure = (thereMs: number, backMs: number) => {
      const sentMs = time.elapsedMs
      pass(thereMs)
      const databaseNow = time.databaseAt
      pass(backMs)
      clock.observe({ databaseNow, sentMs, receivedMs: time.elapsedMs })
    }
    return { time, clock, pass, measure }
  }

  it('before the first measurement, the clock shows the time of the machine', () => {
    const { time, clock } = createClocks()
    expect(clock.now()).toBe(time.machineAt)
    expect(clock.readMachineOffsetUs()).toBeNull()
  })

  it('the clock shows the time of the database, with an error of at most half of the round trip at first', () => {
    const { time, clock, pass, measure } = createClocks()
    measure(8, 2)
    expect(clock.now() - time.databaseAt).toBe(3_000)
    pass(60_000)
    expect(clock.now() - time.databaseAt).toBe(3_000)
    expect(clock.readMachineOffsetUs()).toBe(hourUs - 3_000)
  })

  it('after any measurements, the error is at most the shortest round trip', () => {
    const trips = fc.array(fc.tuple(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 500 })), {
      minLength: 1,
    })
    fc.assert(
      fc.property(trips, (measurements) => {
        const { time, clock, measure } = createClocks()
        for (const [there, back] of measurements) measure(there, back)
        const shortest = Math.min(...measurements.map(([there, back]) => there + back))
        expect(Math.abs(clock.now() - time.databaseAt)).toBeLessThanOrEqual(shortest * 1_000)
      }),
    )
  })

  it('the clock ignores changes of the clock of the machine', () => {
    const { time, clock, measure } = createClocks()
    measure(1, 1)
    for (const step of [hourUs, -5 * hourUs]) {
      time.machineAt += step
      expect(clock.now()).toBe(time.databaseAt)
    }
    expect(clock.readMachineOffsetUs()).toBe(-3 * hourUs)
  })

  it('the clock follows the database when its clock is set forwards or backwards', () => {
    const { time, clock, measure } = createClocks()
    measure(1, 1)
    for (const step of [hourUs, -5 * hourUs]) {
      time.databaseAt += step
      measure(2, 2)
      expect(Math.abs(clock.now() - time.databaseAt)).toBeLessThanOrEqual(4_000)
    }
  })

  it('an instant is bounded by the time of the database, which is a measurement', async () => {
    const { time, clock, pass } = createClocks()
    const connection = {
      query: async () => {
        pass(1)
        return [{ now: time.databaseAt }]
      },
    }
    expect(await clock.bound(connection, time.machineAt)).toBe(time.databaseAt)
    expect(await clock.bound(connection, start - 1)).toBe(start - 1)
    expect(Math.abs(clock.now() - time.databaseAt)).toBeLessThanOrEqual(1_000)
  })
})
