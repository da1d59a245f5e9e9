/**
 * Random calls to an engine, and a model of its store that obeys the same commands. What the engine
 * wrote must be what it was asked for, what it answered must be what was written, and what it wrote must
 * do what the rules say. A failure is shrunk to the shortest list that fails, and printed with its seed.
 *
 * At times the engine is closed, or dropped as by a crash, and a new one opened on the same store: all
 * that an engine knows by itself can be lost at any time.
 */

import { expect, it } from 'vitest'
import type { Leased } from '../../src/core/item.ts'
import { type NewQueue, newQueue } from '../../src/core/queue.ts'
import { isExpired } from '../../src/core/transitions.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine, LeasedItems } from '../../src/engine/engine.ts'
import { ItemRefused } from '../../src/engine/item-refused-error.ts'
import type { NewItem, SettleResult } from '../../src/storage/contract/items.ts'
import type { Command, Results, Storage } from '../../src/storage/contract/storage.ts'
import { Model, withoutGroup } from '../conformance/model.ts'
import { expectSound } from '../conformance/oracle.ts'
import { describeSome, type Given } from '../conformance/stores.ts'
import fc from '../fast-check.ts'
import { hour, minute, noon, second } from '../make.ts'
import { repeats } from '../random-test.ts'

/** Ids are chosen by number, among all that were ever seen: present, gone and given up. */
type Step = Readonly<{ us: number; queue: number }> &
  (
    | { do: 'produce'; items: NewItem[]; partition: number | null }
    | { do: 'lease'; countMax: number }
    | { do: 'complete'; ids: number[] }
    | { do: 'extend'; ids: number[]; forUs: number }
    | { do: 'retry'; items: { id: number; delayUs: number | null | undefined; isDead: boolean }[] }
    | { do: 'advance' }
    | { do: 'pause' }
    | { do: 'reopen'; isCrash: boolean }
  )

const anId = fc.nat(60)
const ids = fc.array(anId, { minLength: 1, maxLength: 3 })
const aNewItem: fc.Arbitrary<NewItem> = fc.record(
  {
    payload: fc.uint8Array({ maxLength: 4 }),
    priority: fc.constantFrom(0, 0, 0, 1),
    attemptsMax: fc.constantFrom(0, 0, 1),
    availableAt: fc.constantFrom(null, null, noon + 10 * second, noon + 5 * minute),
    expireDeadline: fc.constantFrom(noon + 90 * second, noon + hour),
  },
  { requiredKeys: ['payload'] },
)
const when = { us: fc.constantFrom(0, 0, 1, second, 15 * second), queue: fc.constantFrom(0, 0, 1) }
const items = fc.array(aNewItem, { minLength: 1, maxLength: 4 })
const partition = fc.constantFrom(null, null, 0, 1)
const aGivenBack = fc.record({
  id: anId,
  delayUs: fc.constantFrom(undefined, null, second, minute),
  isDead: fc.constantFrom(false, false, true),
})
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('produce'), items, partition, ...when }) },
    {
      weight: 7,
      arbitrary: fc.record({ do: fc.constant('lease'), countMax: fc.integer({ min: 1, max: 5 }), ...when }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('complete'), ids, ...when }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('extend'),
        ids,
        forUs: fc.constantFrom(second, minute),
        ...when,
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('retry'),
        items: fc.array(aGivenBack, { minLength: 1, maxLength: 3 }),
        ...when,
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('advance'), ...when }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('pause'), ...when }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen'), isCrash: fc.boolean(), ...when }) },
  ) as fc.Arbitrary<Step>,
  { minLength: 5, maxLength: 50, size: 'max' },
)

describeSome(['SQLite memory', 'PostgreSQL'], 'any list of calls to an engine', (given) => {
  const runs = repeats(given.name === 'SQLite memory' ? 200 : 10)

  it(`does what the rules say, ${runs} times by chance`, { timeout: 60_000 + runs * 2_000 }, async () => {
    let run = 0
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const session = new Session(given, `run-${++run}`)
        try {
          await session.start()
          for (const step of list) await session.take(step)
          await session.compare()
          await expectSound(given.storage)
        } finally {
          await session.end()
        }
      }),
      { numRuns: runs, endOnFailure: given.name !== 'SQLite memory' },
    )
  })
})

/** A lease that waits. `outcome` is set once it was answered. */
type Waiter = {
  readonly countMax: number
  readonly gone: AbortController
  readonly answer: Promise<void>
  outcome?: LeasedItems | Error
}
type Named = Readonly<{ partition: number; ids: readonly string[]; firstRefused: string | undefined }>
type Obeyed = {
  [Op in keyof Results]: { op: Op; command: Extract<Command, { op: Op }>; result: Results[Op] }
}[keyof Results]
type Lease = Extract<Obeyed, { op: 'lease' }>

class Session {
  readonly #storage: Storage
  readonly #isCheap: boolean
  readonly #names: readonly [work: string, letters: string]
  readonly #model = new Model()
  readonly #ids = ['0'.repeat(27)]
  /** At most one per queue: how several are dealt to is another test's matter. */
  readonly #waiters = new Map<string, Waiter>()
  #obeyed: Obeyed[] = []
  #engine: Engine
  #now = noon
  #steps = 0
  /** After items expired the engine looks anew, and may for a while believe that there are more. */
  #isExact = true
  /** Leases of which some was put back, because its time was over, and the store was not yet told so. */
  #puttingBack = 0
  /** Lists of commands that the store has not answered. */
  #underWay = 0

  constructor(given: Given, name: string) {
    this.#storage = this.#overheard(given.storage)
    this.#isCheap = given.name === 'SQLite memory'
    this.#names = [`${name}-work`, `${name}-letters`]
    this.#engine = this.#open()
  }

  async start(): Promise<void> {
    const [work, letters] = this.#names
    const queues: NewQueue[] = [
      { name: letters, partitions: 2, attemptsMax: 1, leaseUs: minute },
      {
        name: work,
        partitions: 2,
        deadQueue: letters,
        attemptsMax: 2,
        leaseUs: 30 * second,
        retry: { kind: 'list', delaysUs: [0, 5 * second], jitter: 0 },
      },
    ]
    for (const queue of queues) {
      await this.#engine.createQueue(queue)
      this.#model.queues.set(queue.name, newQueue(queue, noon))
    }
    this.#obeyed = []
  }

  async take(step: Step): Promise<void> {
    this.#now += step.us
    const queue = this.#names[step.queue] ?? this.#names[0]
    switch (step.do) {
      case 'produce':
        await this.#produce(queue, step.items, step.partition)
        break
      case 'lease':
        if (!this.#waiters.has(queue)) this.#waiters.set(queue, this.#lease(queue, step.countMax))
        break
      case 'complete': {
        const at = this.#placeOf(queue, step.ids)
        await this.#settle('complete', at, this.#engine.complete(queue, at.partition, at.ids))
        break
      }
      case 'extend': {
        const at = this.#placeOf(queue, step.ids)
        const extended = this.#engine.extend(queue, at.partition, at.ids, step.forUs)
        const deadline = await this.#settle('extend', at, extended)
        if (deadline !== undefined) expect(deadline).toBe(this.#now + step.forUs)
        break
      }
      case 'retry': {
        const at = this.#placeOf(
          queue,
          step.items.map(({ id }) => id),
        )
        const given = step.items.map(({ delayUs, isDead }, index) => ({
          id: at.ids[index] ?? '',
          isDead,
          ...(delayUs !== undefined && { availableAt: delayUs === null ? null : this.#now + delayUs }),
        }))
        await this.#settle('retry', at, this.#engine.retry(queue, at.partition, given))
        break
      }
      case 'advance':
        await this.#engine.advance()
        break
      case 'pause': {
        const isPaused = !this.#model.queues.get(queue)?.isPaused
        this.#model.queues.set(queue, await this.#engine.updateQueue(queue, { isPaused }))
        break
      }
      case 'reopen':
        await this.#reopen(step.isCrash)
    }
    await this.#serve()
    const dueAt = this.#model.nextDueAt()
    if (step.do === 'advance' && dueAt !== null) expect(dueAt, 'nothing is due').toBeGreaterThan(this.#now)
    // Looking costs much on a database over the network, and little in memory.
    if (this.#isCheap || ++this.#steps % 10 === 0) await this.compare()
  }

  async compare(): Promise<void> {
    for (const queue of this.#names) {
      const [items, counts] = await Promise.all([
        this.#engine.listItems({ queue, countMax: 10_000 }),
        this.#engine.stats(queue),
      ])
      expect(items.map(withoutGroup)).toEqual(this.#model.items(queue).map(withoutGroup))
      expect(counts.partitions).toMatchObject(this.#model.counts(queue))
      expect(counts.leaseWaiting).toBe(this.#waiters.has(queue) ? 1 : 0)
    }
  }

  async end(): Promise<void> {
    await this.#engine.close()
    await Promise.all([...this.#waiters.values()].map(({ answer }) => answer))
    await this.#storage.write(this.#names.map((name) => ({ op: 'delete-queue', name }) as const))
  }

  #open(): Engine {
    return createEngine(this.#storage, {
      clock: { now: () => this.#now },
      random: () => 0.5,
      isTicking: false,
    })
  }

  /** The same store; what it was told and what it answered is kept for the model. */
  #overheard(storage: Storage): Storage {
    const write = async (commands: readonly Command[]): Promise<readonly unknown[]> => {
      this.#underWay++
      const results: readonly unknown[] = await storage.write(commands).finally(() => this.#underWay--)
      for (const [index, command] of commands.entries()) {
        this.#obeyed.push({ op: command.op, command, result: results[index] } as Obeyed)
      }
      return results
    }
    return new Proxy(storage, {
      get: (target, key) => {
        if (key === 'write') return write
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }

  /** Lets the model obey the first so many of what the store obeyed. */
  #follow(count: number): void {
    for (const { op, command, result } of this.#obeyed.splice(0, count)) {
      // A lease that found nothing has nobody to answer: it may have been under way since the last step.
      const isFutile = op === 'lease' && result.length === 0 && !this.#isExact
      if ('now' in command && !isFutile) expect(command.now, `the time of ${op}`).toBe(this.#now)
      switch (op) {
        case 'produce':
          this.#ids.push(...result.ids)
          this.#model.produce(command, result)
          break
        case 'lease':
          this.#model.lease(command, result)
          if (result.some((item) => isExpired(item, command.now))) this.#puttingBack++
          break
        case 'unlease':
          this.#model.unlease(command, result)
          this.#puttingBack--
          this.#isExact = false
          break
        case 'complete':
          this.#model.complete(command, result)
          break
        case 'extend':
          this.#model.extend(command, result)
          break
        case 'retry':
          if (result.isSettled) this.#ids.push(...result.changes.flatMap(({ id }) => id ?? []))
          this.#model.retry(command, result)
          break
        case 'advance':
          this.#ids.push(...result.changes.flatMap(({ id }) => id ?? []))
          if (result.changes.some(({ cause }) => cause === 'expire')) this.#isExact = false
          this.#model.advance(command, result)
          break
        case 'create-queue':
        case 'update-queue':
          break
        default:
          throw new Error(`nobody asked for ${op}`)
      }
    }
  }

  async #produce(queue: string, items: readonly NewItem[], partition: number | null): Promise<void> {
    const fewest = this.#waiting(queue)
    const made = await this.#engine.produce(queue, items, partition === null ? {} : { partition })
    const { command, result } = this.#onlyOne('produce')
    expect(command).toMatchObject({ queue, partition: made.partition, items })
    expect(made.ids).toEqual(result.ids)
    if (partition === null && !this.#isExact) return
    expect(made.partition).toBe(partition ?? fewest.indexOf(Math.min(...fewest)))
  }

  /** Undefined when it was refused; then the right one was named. */
  async #settle<T>(op: 'complete' | 'retry' | 'extend', at: Named, call: Promise<T>): Promise<T | undefined> {
    const answer = await call.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    )
    const { result } = this.#onlyOne(op) as { result: SettleResult }
    if (result.isSettled) {
      expect(answer).not.toHaveProperty('error')
      if (op === 'retry') expect(answer).toEqual({ value: result.changes })
      return (answer as { value: T }).value
    }
    const { error } = answer as { error: ItemRefused }
    expect(error).toBeInstanceOf(ItemRefused)
    expect(error.itemId, 'the first that is not leased, or named again').toBe(at.firstRefused)
    return undefined
  }

  #lease(queue: string, countMax: number): Waiter {
    const gone = new AbortController()
    const options = { clientId: `client-${queue}`, countMax, timeoutMs: 5_000, signal: gone.signal }
    const answer = this.#engine.lease(queue, options).then(
      (leased) => {
        waiter.outcome = leased
      },
      (error: Error) => {
        waiter.outcome = error
      },
    )
    const waiter: Waiter = { countMax, gone, answer }
    return waiter
  }

  /**
   * A lease is answered as soon as there is something, and only then. What was there is looked up just
   * before each lease that was written: in one step time may bring several things, one after another.
   */
  async #serve(): Promise<void> {
    const advances = this.#just('advance').filter(({ result }) => result.changes.length > 0)
    // A lease may have been planned before the second of them, and written after it.
    const isExact = this.#isExact && advances.length < 2
    const leases = new Map<
      string,
      Readonly<{ lease: Lease; given: readonly Leased[]; there: readonly number[] }>
    >()
    for (;;) {
      while (this.#obeyed.length > 0) {
        const [next] = this.#obeyed
        if (next?.op === 'lease' && next.result.length > 0) {
          const { queue } = next.command
          const given = next.result.filter((item) => !isExpired(item, this.#now))
          if (given.length > 0) {
            expect(leases.has(queue), 'a second lease for one caller').toBe(false)
            leases.set(queue, { lease: next, given, there: this.#waiting(queue) })
          }
        }
        this.#follow(1)
      }
      if (this.#puttingBack > 0) {
        await new Promise((resolve) => setImmediate(resolve))
        continue
      }
      // As the clockwork does once it is told: what cannot be had any more must not stand before what can.
      if (this.#hasExpired()) {
        // Not while a lease of it is being written: the two would pass each other by.
        await new Promise((resolve) => setImmediate(resolve))
        if (this.#underWay === 0 && this.#obeyed.length === 0) await this.#engine.advance()
        continue
      }
      const due = [...this.#waiters].filter(([queue]) => leases.has(queue) || this.#hasWork(queue))
      if (due.length === 0) break
      await Promise.all(due.map(([, { answer }]) => answer))
      for (const [queue, waiter] of due) {
        const written = leases.get(queue)
        if (written === undefined && this.#obeyed.length > 0) continue
        this.#waiters.delete(queue)
        const { outcome } = waiter
        if (outcome === undefined || outcome instanceof Error) throw outcome
        expect(outcome).toEqual({
          partition: written?.lease.command.partition,
          items: written?.given,
        })
        if (!isExact || !this.#isExact || written === undefined) continue
        const most = Math.max(...written.there)
        expect(outcome.partition, 'the fullest').toBe(written.there.indexOf(most))
        expect(outcome.items).toHaveLength(Math.min(waiter.countMax, most))
      }
    }
    for (const { outcome } of this.#waiters.values()) {
      expect(outcome, 'the answer where nothing is there').toBe(undefined)
    }
  }

  #hasExpired(): boolean {
    const items = this.#names.flatMap((queue) => this.#model.items(queue))
    return items.some(
      (item) => item.state === 'waiting' && item.availableAt === null && isExpired(item, this.#now),
    )
  }

  #hasWork(queue: string): boolean {
    return Math.max(...this.#waiting(queue)) > 0 && !this.#model.queues.get(queue)?.isPaused
  }

  async #reopen(isCrash: boolean): Promise<void> {
    if (isCrash) {
      for (const { gone } of this.#waiters.values()) gone.abort(new Error('crash'))
    } else await this.#engine.close()
    for (const { answer } of this.#waiters.values()) await answer
    for (const { outcome } of this.#waiters.values()) {
      if (isCrash) expect(outcome).toMatchObject({ message: 'crash' })
      else expect(outcome).toMatchObject({ code: 'SHUTTING_DOWN' })
    }
    this.#waiters.clear()
    // What the old engine still had under way is told of it, and by what it believed.
    while (this.#underWay > 0) await new Promise((resolve) => setImmediate(resolve))
    this.#follow(this.#obeyed.length)
    this.#engine = this.#open()
    this.#isExact = true
  }

  /** What the store obeyed in this step. */
  #just<Op extends keyof Results>(op: Op): Extract<Obeyed, { op: Op }>[] {
    return this.#obeyed.filter((each): each is Extract<Obeyed, { op: Op }> => each.op === op)
  }

  #onlyOne<Op extends keyof Results>(op: Op): Extract<Obeyed, { op: Op }> {
    const [one, ...others] = this.#just(op)
    if (one === undefined || others.length > 0) throw new Error(`one ${op} was to be written`)
    return one
  }

  /** How many there are to lease, per partition. */
  #waiting(queue: string): number[] {
    return this.#model.counts(queue).map(({ waiting }) => waiting)
  }

  /** Mostly items that are leased there: others are only refused. */
  #placeOf(queue: string, numbers: readonly number[]): Named {
    const here = this.#model.items(queue)
    const leased = here.filter(({ state }) => state === 'leased')
    const ids = numbers.map((number) => {
      const id = number % 5 === 0 ? undefined : leased[number % Math.max(leased.length, 1)]?.id
      return id ?? this.#ids.at(-1 - (number % this.#ids.length)) ?? ''
    })
    const partition = here.find(({ id }) => id === ids[0])?.partition ?? 0
    const isLeased = (id: string) => leased.some((item) => item.id === id && item.partition === partition)
    return { partition, ids, firstRefused: ids.find((id, index) => !isLeased(id) || ids.indexOf(id) < index) }
  }
}
