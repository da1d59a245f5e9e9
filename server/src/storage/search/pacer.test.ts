import { describe, expect, it } from 'vitest'
import { chooseLetters, Pacer } from './pacer.ts'

describe('the pace of a search', () => {
  it('a step examines more letters while the steps stay short, up to a limit', () => {
    expect(chooseLetters(1_000, 1_000, 5, 900)).toBe(4_000)
    expect(chooseLetters(8_000, 8_000, 400, 900)).toBe(2_000)
    expect(chooseLetters(20_000, 20_000, 1, 900)).toBe(20_000)
  })

  it('a step examines fewer letters at the end of the time, and after a slow step', () => {
    expect(chooseLetters(8_000, 8_000, 20, 10)).toBe(4_000)
    expect(chooseLetters(1_000, 3, 3_000, 900)).toBe(100)
  })

  it('the time of a search is one budget for all of its steps', () => {
    let ms = 0
    const pacer = new Pacer({ msMax: 250, elapsedMs: () => ms }, 50)
    expect(pacer.startStep()).toEqual({ examinedMax: 1_000, msMax: 200 })
    ms += 100
    pacer.endStep(1_000)
    expect(pacer.isOver).toBe(false)
    expect(pacer.startStep()).toEqual({ examinedMax: 1_000, msMax: 150 })
    ms += 150
    pacer.endStep(1_000)
    expect(pacer.isOver).toBe(true)
  })

  it('a search with a limit of letters is over when they are examined', () => {
    const pacer = new Pacer({ examinedMax: 1_500, elapsedMs: () => 0 }, 50)
    expect(pacer.startStep().examinedMax).toBe(1_000)
    pacer.endStep(1_000)
    expect(pacer.startStep().examinedMax).toBe(500)
    pacer.endStep(500)
    expect(pacer.isOver).toBe(true)
  })
})
