/**
 * Random calls to an engine, and a model of its store that executes the same commands. The engine must write
 * what the calls ask for, and answer with what was written, and the store must change as the rules say. A
 * failure is shrunk to the shortest list that fails, and printed with its seed.
 *
 * At times the engine is closed, or dropped as by a crash, and another one is opened on the same store: an
 * engine may lose all that it has in memory at any time.
 */

import { expect, it } from 'vitest'
import type { Leased } from '../../src/core/items/item.ts'
import { buildQueue, type NewQueue } from '../../src/core/items/queue.ts'
import { isExpired } from '../../src/core/items/transitions.ts'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine, LeasedItems } from '../../src/engine/engine.ts'
import { ItemRefused } from '../../src/engine/writes/item-refused-error.ts'
import type { NewItem, SettleResult } from '../../src/storage/contract/items.ts'
import type { Command, Results, Storage } from '../../src/storage/contract/storage.ts'
import { expectConsistentStore } from '../conformance/support/expect-consistent-store.ts'
import { ReferenceModel } from '../conformance/support/reference-model.ts'
import { withoutGroup } from '../conformance/support/reference-rows.ts'
import { describeTheseStores, type StoreFixture } from '../conformance/support/test-stores.ts'
import fc from '../fast-check.ts'
import { hour, minute, noon, second } from '../make.ts'
import { repeats } from '../random-test.ts'

/** Ids are chosen by number among all ids ever seen, also of items that are gone. */
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

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'any list of calls to an engine', (given) => {
  const runs = repeats(given.name === 'SQLite memory' ? 200 : 10)

  it(`an engine follows the rules in ${runs} random lists of calls`, {
    timeout: 60_000 + runs * 2_000,
  }, async () => {
    let run = 0
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const session = new Session(given, `run-${++run}`)
        try {
          await session.start()
          for (const step of list) await session.take(step)
          await session.compare()
          await expectConsistentStore(given.storage)
        } finally {
          await session.end()
        }
      }),
      { numRuns: runs, endOnFailure: given.name !== 'SQLite memory' },
    )
  })
})

/** A waiting lease. `outcome` is set once it is answered. */
type Waiter = {
  readonly countMax: number
  readonly gone: AbortController
  readonly answer: Promise<void>
  outcome?: LeasedItems | Error
}
type Named = Readonly<{ partition: number; ids: readonly string[]; firstRefused: string | undefined }>
type Executed = {
  [Op in keyof Results]: { op: Op; command: Extract<Command, { op: Op }>; result: Results[Op] }
}[keyof Results]
/** A lease that got items, and how many were available in each partition before. */
type WrittenLease = Readonly<{ partition: number; given: readonly Leased[]; available: readonly number[] }>

class Session {
  readonly #storage: Storage
  readonly #isCheap: boolean
  readonly #names: readonly [work: string, letters: string]
  readonly #model = new ReferenceModel()
  readonly #ids = ['0'.repeat(27)]
  /** At most one per queue: other tests cover how several leases share items. */
  readonly #waiters = new Map<string, Waiter>()
  #executed: Executed[] = []
  #engine: Engine
  #now = noon
  #steps = 0
  /** After items expired, the engine counts again, and its counts may be too high for a while. */
  #isExact = true
  /** Leases with expired items that have not been put back in the store yet. */
  #puttingBack = 0
  /** Writes that the store has not answered yet. */
  #inProgress = 0

  constructor(given: StoreFixture, name: string) {
    this.#storage = this.#recorded(given.storage)
    this.#isCheap = given.name === 'SQLite memory'
    this.#names = [`${name}-work`, `${name}-letters`]
    this.#engine = this.#open()
  }

  async start(): Promise<void> {
    const [work, letters] = this.#names
    const queues: NewQueue[] = [
      { name: letters, partitions: 2, attemptsMax: 1, leaseTimeoutUs: minute },
      {
        name: work,
        partitions: 2,
        deadQueue: letters,
        attemptsMax: 2,
        leaseTimeoutUs: 30 * second,
        retry: { kind: 'list', delaysUs: [0, 5 * second], jitter: 0 },
      },
    ]
    for (const queue of queues) {
      await this.#engine.createQueue(queue)
      this.#model.queues.set(queue.name, buildQueue(queue, noon))
    }
    this.#executed = []
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
        const at = this.#pickItems(queue, step.ids)
        await this.#settle('complete', at, this.#engine.complete(queue, at.partition, at.ids))
        break
      }
      case 'extend': {
        const at = this.#pickItems(queue, step.ids)
        const extended = this.#engine.extend(queue, at.partition, at.ids, step.forUs)
        const deadline = await this.#settle('extend', at, extended)
        if (deadline !== undefined) expect(deadline).toBe(this.#now + step.forUs)
        break
      }
      case 'retry': {
        const at = this.#pickItems(
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
    // Comparing is expensive with a database server, and cheap in memory.
    if (this.#isCheap || ++this.#steps % 10 === 0) await this.compare()
  }

  async compare(): Promise<void> {
    for (const queue of this.#names) {
      const [items, counts] = await Promise.all([
        this.#engine.listItems({ queue, countMax: 10_000 }),
        this.#engine.readStats(queue),
      ])
      expect(items.map(withoutGroup)).toEqual(this.#model.items(queue).map(withoutGroup))
      expect(counts.partitions).toMatchObject(this.#model.counts(queue))
      expect(counts.leaseWaiting).toBe(this.#waiters.has(queue) ? 1 : 0)
    }
  }

  async end(): Promise<void> {
    await this.#engine.close()
    await Promise.all([...this.#waiters.values()].map(({ answer }) => answer))
    await this.#storage.write(
      this.#names.map((name) => ({ op: 'delete-queue', name, isForced: true }) as const),
    )
  }

  #open(): Engine {
    return createEngine(this.#storage, {
      clock: { now: () => this.#now },
      random: () => 0.5,
      isTicking: false,
    })
  }

  /** The same store, recording commands and results for the model. */
  #recorded(storage: Storage): Storage {
    const write = async (commands: readonly Command[]): Promise<readonly unknown[]> => {
      this.#inProgress++
      const results: readonly unknown[] = await storage.write(commands).finally(() => this.#inProgress--)
      for (const [index, command] of commands.entries()) {
        this.#executed.push({ op: command.op, command, result: results[index] } as Executed)
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

  /** Lets the model execute the first `count` commands that the store executed. */
  #follow(count: number): void {
    for (const executed of this.#executed.splice(0, count)) this.#execute(executed)
  }

  #execute({ op, command, result }: Executed): void {
    // A lease that found nothing answers no call: it may have been in progress since the last step.
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

  async #produce(queue: string, items: readonly NewItem[], partition: number | null): Promise<void> {
    const fewest = this.#waiting(queue)
    const made = await this.#engine.produce(queue, items, partition === null ? {} : { partition })
    const { command, result } = this.#onlyOne('produce')
    expect(command).toMatchObject({ queue, partition: made.partition, items })
    expect(made.ids).toEqual(result.ids)
    if (partition === null && !this.#isExact) return
    expect(made.partition).toBe(partition ?? fewest.indexOf(Math.min(...fewest)))
  }

  /** Undefined if the call was refused; then the error names the right item. */
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
   * A lease is answered as soon as there are items, and only then. The available items are read just before
   * each lease that was written: several changes can follow each other in one step.
   */
  async #serve(): Promise<void> {
    const advances = this.#just('advance').filter(({ result }) => result.changes.length > 0)
    // A lease may have been planned before the second advance, and written after it.
    const isExact = this.#isExact && advances.length < 2
    const written = new Map<string, WrittenLease>()
    for (;;) {
      this.#followLeases(written)
      if (await this.#settleExpired()) continue
      const due = [...this.#waiters].filter(([queue]) => written.has(queue) || this.#hasWork(queue))
      if (due.length === 0) break
      await Promise.all(due.map(([, { answer }]) => answer))
      for (const [queue, waiter] of due) {
        const lease = written.get(queue)
        if (lease === undefined && this.#executed.length > 0) continue
        this.#waiters.delete(queue)
        this.#checkAnswer(waiter, lease, isExact && this.#isExact)
      }
    }
    for (const { outcome } of this.#waiters.values()) {
      expect(outcome, 'the answer where nothing is there').toBe(undefined)
    }
  }

  /** Follows all commands, and notes leases that got items together with the items available before them. */
  #followLeases(written: Map<string, WrittenLease>): void {
    while (this.#executed.length > 0) {
      const [next] = this.#executed
      if (next?.op === 'lease' && next.result.length > 0) {
        const { queue, partition } = next.command
        const given = next.result.filter((item) => !isExpired(item, this.#now))
        if (given.length > 0) {
          expect(written.has(queue), 'a second lease for one caller').toBe(false)
          written.set(queue, { partition, given, available: this.#waiting(queue) })
        }
      }
      this.#follow(1)
    }
  }

  /** Whether expired items had to be put back or removed first. */
  async #settleExpired(): Promise<boolean> {
    if (this.#puttingBack > 0) {
      await new Promise((resolve) => setImmediate(resolve))
      return true
    }
    // The due scheduler removes expired items, so that they do not block the items behind them.
    if (!this.#hasExpired()) return false
    // Not while a lease is being written: the order of the two would be unknown.
    await new Promise((resolve) => setImmediate(resolve))
    if (this.#inProgress === 0 && this.#executed.length === 0) await this.#engine.advance()
    return true
  }

  #checkAnswer(waiter: Waiter, lease: WrittenLease | undefined, isExact: boolean): void {
    const { outcome } = waiter
    if (outcome === undefined || outcome instanceof Error) throw outcome
    expect(outcome).toEqual({ partition: lease?.partition, items: lease?.given })
    if (!isExact || lease === undefined) return
    const most = Math.max(...lease.available)
    expect(outcome.partition, 'the fullest').toBe(lease.available.indexOf(most))
    expect(outcome.items).toHaveLength(Math.min(waiter.countMax, most))
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
    // Wait for the writes of the old engine, and let the model execute them.
    while (this.#inProgress > 0) await new Promise((resolve) => setImmediate(resolve))
    this.#follow(this.#executed.length)
    this.#engine = this.#open()
    this.#isExact = true
  }

  /** The commands of one kind that the store executed in this step. */
  #just<Op extends keyof Results>(op: Op): Extract<Executed, { op: Op }>[] {
    return this.#executed.filter((each): each is Extract<Executed, { op: Op }> => each.op === op)
  }

  #onlyOne<Op extends keyof Results>(op: Op): Extract<Executed, { op: Op }> {
    const [one, ...others] = this.#just(op)
    if (one === undefined || others.length > 0) throw new Error(`one ${op} was to be written`)
    return one
  }

  /** How many items can be leased, by partition. */
  #waiting(queue: string): number[] {
    return this.#model.counts(queue).map(({ waiting }) => waiting)
  }

  /** Chooses mostly leased items of the queue: others are only refused. */
  #pickItems(queue: string, numbers: readonly number[]): Named {
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
