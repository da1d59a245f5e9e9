import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { aFailure, anOrigin, noon } from '../../../../test/make.ts'
import { toRootId } from '../../../core/ids/ids.ts'
import type { Command } from '../../contract/storage.ts'
import { openSqlite } from '../sqlite-storage.ts'
import { BackgroundThrottle, isBackground } from './background-throttle.ts'

describe('the background throttle', () => {
  it('a write that changes dozens of letters is background work, except for captured letters', () => {
    const archive = (countMax: number): Command => ({
      op: 'archive',
      queue: 'dead',
      endedBefore: noon,
      countMax,
      now: noon,
    })
    const lock = { name: 'retention', token: 1 }
    expect(isBackground([{ op: 'fence', lock }, archive(1_000)])).toBe(true)
    expect(isBackground([{ op: 'fence', lock }, archive(10)])).toBe(false)
    const items = Array.from({ length: 1_000 }, () => ({ payload: new Uint8Array(1) }))
    expect(isBackground([{ op: 'import', queue: 'dead', partition: 0, items, now: noon }])).toBe(false)
    expect(isBackground([{ op: 'produce', queue: 'work', partition: 0, items, now: noon }])).toBe(false)
  })

  it('pauses four times the duration of a background write while foreground writes arrive', () => {
    const throttle = new BackgroundThrottle<string>()
    expect(throttle.delayMs(0)).toBeUndefined()
    throttle.add('first')
    throttle.add('second')
    expect(throttle.delayMs(0)).toBe(0)
    expect(throttle.take()).toBe('first')
    throttle.noteBackgroundWrite(40, 40)
    for (let nowMs = 40; nowMs <= 180; nowMs += 10) throttle.noteForegroundWrite(nowMs)
    expect(throttle.delayMs(180)).toBe(20)
    for (let nowMs = 190; nowMs <= 200; nowMs += 10) throttle.noteForegroundWrite(nowMs)
    expect(throttle.delayMs(200)).toBe(0)
    expect(throttle.take()).toBe('second')
    expect(throttle.delayMs(200)).toBeUndefined()
  })

  it('background work does not pause without foreground writes, and never for long', () => {
    const throttle = new BackgroundThrottle<string>()
    throttle.add('work')
    throttle.noteBackgroundWrite(10_000, 0)
    throttle.noteForegroundWrite(0)
    expect(throttle.delayMs(5)).toBe(15)
    expect(throttle.delayMs(20)).toBe(0)
    throttle.noteForegroundWrite(495)
    expect(throttle.delayMs(495)).toBe(5)
  })

  it('a queue can write between two background writes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-throttle-'))
    const storage = await openSqlite({ kind: 'sqlite', path: join(folder, 'redrive.db') })
    try {
      const letter = { payload: new Uint8Array(100), origin: anOrigin(), failure: aFailure() }
      const items = Array.from({ length: 1_000 }, () => letter)
      const [, , imported] = await storage.write([
        { op: 'create-queue', queue: { name: 'dead' }, now: noon },
        { op: 'create-queue', queue: { name: 'work' }, now: noon },
        { op: 'import', queue: 'dead', partition: 0, items, now: noon },
      ])
      const ended: string[] = []
      const discards = Array.from({ length: 10 }, async (_, part) => {
        const letters = imported
          .slice(part * 100, (part + 1) * 100)
          .map(({ id }) => ({ letterId: toRootId(id ?? '') }))
        const [results] = await storage.write([{ op: 'discard', letters, reason: 'test', now: noon }])
        expect(results.every(({ isDiscarded }) => isDiscarded)).toBe(true)
        ended.push('discard')
      })
      let isOver = false
      const produce = async () => {
        while (!isOver) {
          const item = { payload: new Uint8Array(1) }
          await storage.write([{ op: 'produce', queue: 'work', partition: 0, items: [item], now: noon }])
          ended.push('produce')
        }
      }
      const producing = produce()
      await Promise.all(discards)
      isOver = true
      await producing
      const between = ended.slice(ended.indexOf('discard'), ended.lastIndexOf('discard'))
      expect(between).toContain('produce')
    } finally {
      await storage.close()
      rmSync(folder, { recursive: true })
    }
  })
})
