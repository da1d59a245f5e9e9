import { describe, expect, it } from 'vitest'
import fc from '../../../test/fast-check.ts'
import { noon, second } from '../../../test/make.ts'
import { createXidGenerator, isXid, parseXid } from './xid.ts'

const source = { machine: Uint8Array.of(0x60, 0xf4, 0x86), processId: 0xe428, counterStart: 0x412dc8 }

describe('xids', () => {
  it('an xid has the documented bytes in base32hex', () => {
    const next = createXidGenerator(source)
    const id = next(0x4d88e15b * second)
    expect(parseXid(id)).toEqual({
      createdAt: 0x4d88e15b * second,
      machine: source.machine,
      processId: 0xe428,
      counter: 0x412dc9,
    })
    expect(id).toBe('9m4e2mr0ui3e8a215n4g')
  })

  it('every xid has 20 digits, ends in 0 or g and can be parsed', () => {
    const word = fc.integer({ min: 0, max: 0xffff })
    const machine = fc.uint8Array({ minLength: 3, maxLength: 3 })
    const counter = fc.integer({ min: 0, max: 0xffffff })
    fc.assert(
      fc.property(machine, word, counter, fc.nat(0xffffffff), (bytes, processId, counterStart, seconds) => {
        const id = createXidGenerator({ machine: bytes, processId, counterStart })(seconds * second)
        expect(id).toMatch(/^[0-9a-v]{19}[0g]$/)
        expect(isXid(id)).toBe(true)
        expect(parseXid(id)).toEqual({
          createdAt: seconds * second,
          machine: bytes,
          processId,
          counter: (counterStart + 1) & 0xffffff,
        })
      }),
    )
  })

  it('ids of one generator differ and sort by second, also when the counter starts again', () => {
    const next = createXidGenerator({ ...source, counterStart: 0xfffffd })
    const sameSecond = Array.from({ length: 8 }, () => next(noon))
    expect(new Set(sameSecond).size).toBe(8)
    expect(next(noon + second) > (sameSecond.toSorted().at(-1) as string)).toBe(true)
  })

  it('texts of another length, alphabet or last digit are not xids', () => {
    for (const text of ['', '9m4e2mr0ui3e8a215n4', '9m4e2mr0ui3e8a215n4w', '9M4E2MR0UI3E8A215N4G']) {
      expect(isXid(text)).toBe(false)
      expect(parseXid(text)).toBeUndefined()
    }
    expect(isXid('9m4e2mr0ui3e8a215n41')).toBe(false)
    expect(isXid('9m4e2mr0ui3e8a215n4g\n')).toBe(false)
  })
})
