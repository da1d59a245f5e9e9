/** Automatic redrives of letters next to letters that cannot be sent. */
import { afterEach, expect, it } from 'vitest'
import type { Command, Storage } from '../../src/storage/contract/storage.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { minute, noon, second } from '../make.ts'
import {
  ann,
  captured,
  consume,
  createQueuePair,
  createTestSystem,
  lettersFrom,
  type TestSystem,
} from './test-system.ts'

const backoff = { kind: 'fixed', delayUs: 5 * second, jitter: 0 } as const
const automatic = { mode: 'auto', redrivesMax: 3, backoff } as const

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'letters that are due and cannot be sent', (given) => {
  let world: TestSystem
  afterEach(() => world?.close())
  const begin = async () => {
    world = createTestSystem(given.storage)
    return createQueuePair(world, { redrive: automatic })
  }
  const work = async (letters = world.letters) => {
    for (let passes = 0; await letters.passes.auto(); passes++) {
      if (passes > 100) throw new Error('the automatic redrives do not end')
    }
  }
  /** Records the number of letters that each written command names. */
  const watched = (storage: Storage) => {
    const named: { op: string; letters: number }[] = []
    const write = (commands: readonly Command[]) => {
      for (const command of commands) {
        if (command.op === 'redrive') named.push({ op: command.op, letters: command.letters.length })
      }
      return storage.write(commands)
    }
    const watching = new Proxy(storage, {
      get: (target, name) => {
        if (name === 'write') return write
        const value = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    return { named, watching }
  }

  it('letters without a target are postponed and the others are sent when due', async () => {
    const { queue, deadQueue } = await begin()
    await captured(world, deadQueue, lettersFrom('gone', 1))
    world.tick(8 * second)
    await work()
    for (let times = 0; times < 3; times++) {
      await captured(world, deadQueue, lettersFrom(queue, 1, { sourceId: `b${times}` }))
      world.tick(5 * second - 1)
      await work()
      expect(await consume(world, queue)).toEqual([])
      world.tick(1)
      await work()
      expect(await consume(world, queue)).toEqual(['order 0'])
    }
  })

  it('letters without a target are tried once a minute by one server, without audit rows, and sent once possible', async () => {
    const { deadQueue } = await begin()
    const { named, watching } = watched(given.storage)
    const servers = [world.startServer(watching).letters, world.startServer(watching).letters]
    const [id = ''] = await captured(world, deadQueue, lettersFrom('back-later', 1))
    world.tick(5 * second)
    const passes = async (seconds: number) => {
      for (let times = 0; times < seconds; times++) {
        for (const server of servers) await work(server)
        world.tick(second)
      }
    }
    await passes(60)
    expect(named).toEqual([{ op: 'redrive', letters: 1 }])
    await passes(60)
    expect(named).toHaveLength(2)
    await given.storage.write([{ op: 'create-queue', queue: { name: 'back-later' }, now: world.now() }])
    await passes(1)
    expect(named).toHaveLength(3)
    expect(await consume(world, 'back-later')).toEqual(['order 0'])
    const rows = await given.storage.listAudit({ countMax: 99 })
    const own = rows.filter(({ target }) => target === deadQueue || target === id)
    expect(own.map(({ action }) => action).toSorted()).toEqual(['letter.redrive', 'letters.auto-redrive'])
  })

  it('letters without a target do not block the letters behind them', async () => {
    const { queue, deadQueue } = await begin()
    const { named, watching } = watched(given.storage)
    const { letters } = world.startServer(watching)
    const gone = lettersFrom('gone', 3_500, { deadLetteredAt: noon - minute })
    const ids = await captured(world, deadQueue, gone)
    await captured(world, deadQueue, lettersFrom(queue, 1))
    world.tick(5 * second)
    await work(letters)
    expect(await consume(world, queue)).toEqual(['order 0'])
    expect(named.reduce((sum, { letters }) => sum + letters, 0)).toBe(3_501)
    const next = (await given.storage.getLetters(ids)).map(({ letter }) => letter?.nextRedriveAt ?? 0)
    expect(Math.min(...next)).toBe(world.now() + minute)
    expect(new Set(next).size).toBeGreaterThan(3)
    expect(Math.max(...next)).toBeLessThan(world.now() + minute + 10 * second)
    // The letters are not examined until then.
    named.length = 0
    for (let times = 0; times < 59; times++) {
      world.tick(second)
      await work(letters)
    }
    expect(named).toEqual([])
  })

  it('letters above a lowered cap become DEAD once, on whichever server comes first', async () => {
    const { queue, deadQueue } = await begin()
    const ids = await captured(world, deadQueue, lettersFrom(queue, 3))
    world.tick(5 * second)
    await work()
    expect(await consume(world, queue, () => false)).toHaveLength(3)
    const another = world.startServer().letters
    // Both servers process the letters: one by the changed policy, one because they are due.
    await world.engine.updateQueue(deadQueue, { redrive: { ...automatic, redrivesMax: 1 } }, ann)
    world.tick(5 * second)
    await Promise.all([work(), work(another)])
    const found = await given.storage.getLetters(ids)
    for (const { state, retryCount, letter } of found) {
      expect({ state, retryCount, next: letter?.nextRedriveAt }).toEqual({
        state: 'dead',
        retryCount: 1,
        next: null,
      })
    }
    for (const id of ids) {
      const rows = await given.storage.listAudit({ target: id, countMax: 9 })
      expect(rows.map(({ actor, action }) => `${actor} ${action}`)).toEqual([
        'policy letter.exhaust',
        'policy letter.redrive',
      ])
    }
    await world.engine.updateQueue(deadQueue, { redrive: { ...automatic, redrivesMax: 9 } }, ann)
    world.tick(minute)
    await Promise.all([work(), work(another)])
    expect(await consume(world, queue)).toEqual([])
  })
})
