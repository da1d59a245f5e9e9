/** Many clients at once, on each store: all their answers together must be possible, item by item. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createEngine } from '../../src/engine/create-engine.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { ItemRefused } from '../../src/engine/writes/item-refused-error.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { expectConsistentStore } from '../conformance/support/expect-consistent-store.ts'
import { listAll } from '../conformance/support/store-reads.ts'
import {
  createTestStore,
  needsOf,
  type StoreName,
  type TestStore,
} from '../conformance/support/test-stores.ts'
import { newItems, noon, second } from '../make.ts'
import { repeats, withRandom } from '../random-test.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { faultsOf, type Held, History } from './history.ts'

const producers = 4
const workers = 8
const partitions = 2
const leaseTimeoutUs = 10 * second
const producesEach = 40
/** After this number of leases each worker only completes items, so that the test ends. */
const leasesEach = 40
const restMsMax = 20_000

type Way = 'time passes' | 'clients leave'

for (const name of ['SQLite memory', 'SQLite file', 'PostgreSQL'] as const satisfies StoreName[]) {
  describe(`a history of an engine (${name})`, needsOf(name), () => {
    const runs = repeats(name === 'SQLite memory' ? 4 : 1)
    let place: TestStore | undefined
    afterEach(async () => place?.drop())

    it.for<Way>(['time passes', 'clients leave'])(
      `all answers together are possible, in ${runs} random histories, when %s`,
      { timeout: 30_000 + runs * 30_000 },
      async (way) => {
        place = await createTestStore(name)
        for (let run = 0; run < runs; run++) {
          await withRandom((chance) => play(place as TestStore, `orders-${run}`, way, chance), run)
        }
      },
    )
  })
}

async function play(place: TestStore, queue: string, way: Way, chance: SeededRandom): Promise<void> {
  const isShared = place.name === 'PostgreSQL'
  const storages: Storage[] = [await place.open()]
  if (isShared) storages.push(await place.open())
  const scene = new Scene(queue, way, chance)
  // One engine needs no ticks to know its items. Two engines find by ticks what a lost announcement would
  // have reported.
  const engines = storages.map((storage) => createEngine(storage, { clock: scene, isTicking: isShared }))
  if (isShared) scene.history.advanced.push({ from: 0, to: Number.POSITIVE_INFINITY })
  const [engine, other = engine] = engines as [Engine, Engine?]
  const [storage] = storages as [Storage]
  if (place.name === 'SQLite memory') answerLate(storage, chance)
  try {
    await engine.createQueue({ name: `${queue}-dead` })
    await engine.createQueue({ name: queue, partitions, leaseTimeoutUs, deadQueue: `${queue}-dead` })
    await scene.play([engine, other])
    expect(
      faultsOf(scene.history, {
        leaseTimeoutUs,
        isAdvanceExact: !isShared,
        isOrderExact: way === 'time passes',
      }),
    ).toEqual([])
    await expectConsistentStore(storage)
    await expectAllAccountedFor(scene.history, storage, queue)
  } finally {
    await Promise.all(engines.map((each) => each.close()))
    await Promise.all(storages.map((each) => each.close()))
  }
}

/** Delays answers, as a remote store does: they arrive late, and not in the order of the writes. */
function answerLate(storage: Storage, chance: SeededRandom): void {
  const write = storage.write.bind(storage)
  storage.write = async (commands) => {
    const results = await write(commands)
    if (chance.below(2) === 0) await sleep(chance.below(4))
    return results
  }
}

/** Every item was completed or is a dead letter, in the history and in the store. */
async function expectAllAccountedFor(history: History, storage: Storage, queue: string): Promise<void> {
  const accepted = history.produced.flatMap(({ ids }) => ids).length
  const dead = history.settled.filter(({ as }) => as === 'dead').map(({ id }) => id)
  const letters = await listAll(storage, `${queue}-dead`)
  expect(letters.map(({ sourceId }) => sourceId).toSorted()).toEqual(dead.toSorted())
  expect(await listAll(storage, queue)).toEqual([])
  const counts = await storage.readCounts({ queue })
  const sum = (key: 'accepted' | 'completed' | 'deadLettered') =>
    counts.reduce((total, row) => total + row[key], 0)
  expect([sum('accepted'), sum('completed'), sum('deadLettered')]).toEqual([
    accepted,
    accepted - dead.length,
    dead.length,
  ])
}

class Scene {
  readonly history = new History(noon)
  readonly #queue: string
  readonly #way: Way
  readonly #chance: SeededRandom
  readonly #over = new AbortController()
  #now = noon
  #isProduced = false
  /** Root ids of items that are neither completed nor dead. */
  readonly #left = new Set<string>()

  constructor(queue: string, way: Way, chance: SeededRandom) {
    this.#queue = queue
    this.#way = way
    this.#chance = chance
  }

  now(): number {
    return this.#now
  }

  async play(engines: readonly [Engine, Engine]): Promise<void> {
    const pick = (index: number): Engine => engines[index % 2] as Engine
    const late = setTimeout(() => this.#over.abort(), restMsMax)
    const producing = Array.from({ length: producers }, (_, index) => this.#produce(pick(index)))
    const all = [
      ...Array.from({ length: workers }, (_, index) => this.#work(pick(index), `worker-${index}`)),
      this.#letTimePass(engines),
      Promise.all(producing).then(() => {
        this.#isProduced = true
        this.#endIfDone()
      }),
    ]
    try {
      await Promise.all(all)
    } finally {
      clearTimeout(late)
      this.#over.abort()
      await Promise.allSettled(all)
    }
    expect([...this.#left], `not settled within ${restMsMax} ms`).toEqual([])
  }

  async #produce(engine: Engine): Promise<void> {
    for (let call = 0; call < producesEach; call++) {
      const from = this.history.next()
      const options = this.#chance.below(3) === 0 ? { partition: this.#chance.below(partitions) } : {}
      const made = await engine.produce(this.#queue, newItems(1 + this.#chance.below(4)), options)
      this.history.produced.push({ from, to: this.history.next(), ...made })
      for (const id of made.ids) if (!this.#early.delete(id)) this.#left.add(id)
      if (this.#chance.below(4) === 0) await sleep(this.#chance.below(4))
    }
  }

  async #letTimePass(engines: readonly Engine[]): Promise<void> {
    if (this.#way === 'clients leave') return
    while (!this.#over.signal.aborted) {
      this.#now += this.#chance.below(2 * second)
      this.history.setClock(this.#now)
      const from = this.history.next()
      await this.#chance.pick(engines).advance()
      this.history.advanced.push({ from, to: this.history.next() })
      await sleep(this.#chance.below(4))
    }
  }

  async #work(engine: Engine, client: string): Promise<void> {
    let kept: Hand | undefined
    for (let step = 0; !this.#over.signal.aborted; step++) {
      const isRandom = step < leasesEach
      const hand = await this.#lease(engine, client, isRandom)
      if (hand === undefined) continue
      if (!isRandom) {
        await this.#complete(engine, hand, hand.items)
        continue
      }
      // The worker keeps the items until after its next lease, perhaps beyond their deadline.
      if (kept !== undefined) await this.#complete(engine, kept, kept.items)
      kept = undefined
      if (this.#way === 'time passes' && this.#chance.below(4) === 0) kept = hand
      else await this.#settle(engine, hand)
    }
  }

  async #lease(engine: Engine, client: string, isRandom: boolean): Promise<Hand | undefined> {
    const { signal, leaves } = this.#leaving(isRandom)
    const countMax = 1 + this.#chance.below(6)
    const from = this.history.next()
    try {
      const options = {
        clientId: client,
        countMax,
        timeoutMs: leaves ? 1 + this.#chance.below(5) : 60_000,
        signal,
      }
      const { partition, items } = await engine.lease(this.#queue, options)
      const held = items.map(({ id, rootId, attempts, lease }) => ({
        id,
        rootId,
        attempts,
        deadline: lease.deadline,
      }))
      if (items.length > countMax) throw new Error(`${client} asked for ${countMax}, got ${items.length}`)
      this.history.leased.push({ from, to: this.history.next(), client, partition, items: held })
      return { partition, items: held }
    } catch (error) {
      const isLeft = signal.aborted || (leaves && (error as { code?: string }).code === 'LEASE_TIMEOUT')
      if (!isLeft) throw error
      return undefined
    }
  }

  /** A client can leave at any moment: before its items are leased, while they are, or afterwards. */
  #leaving(isRandom: boolean): { signal: AbortSignal; leaves: boolean } {
    const leaves = isRandom && this.#way === 'clients leave' && this.#chance.below(2) === 0
    if (!leaves) return { signal: this.#over.signal, leaves }
    const own = new AbortController()
    const how = this.#chance.below(3)
    if (how === 0) setImmediate(() => own.abort())
    if (how === 1) setTimeout(() => own.abort(), this.#chance.below(4))
    return { signal: AbortSignal.any([this.#over.signal, own.signal]), leaves }
  }

  async #settle(engine: Engine, hand: Hand): Promise<void> {
    const { items } = hand
    const [first, ...rest] = items
    switch (this.#chance.below(6)) {
      case 0:
        await this.#retry(engine, hand, items)
        return
      case 1:
        // Twice at the same time: one of them is refused.
        await Promise.all([this.#complete(engine, hand, items), this.#complete(engine, hand, items)])
        return
      case 2:
        await Promise.all([this.#complete(engine, hand, items), this.#retry(engine, hand, items)])
        return
      case 3:
        if (first !== undefined) await this.#complete(engine, hand, [first])
        if (rest.length > 0) await this.#retry(engine, hand, rest)
        return
      case 4:
        // The worker forgets the items: their lease ends at its deadline, if time passes.
        if (this.#way === 'time passes') return
        await this.#complete(engine, hand, items)
        return
      default:
        await this.#complete(engine, hand, items)
    }
  }

  async #complete(engine: Engine, { partition }: Hand, items: readonly Held[]): Promise<void> {
    const ids = items.map(({ id }) => id)
    await this.#told(async (from) => {
      await engine.complete(this.#queue, partition, ids)
      const to = this.history.next()
      for (const id of ids) this.history.settled.push({ from, to, as: 'completed', id, nextId: null })
      this.#settled(items)
    })
  }

  async #retry(engine: Engine, { partition }: Hand, items: readonly Held[]): Promise<void> {
    const isDead = this.#chance.below(6) === 0
    const isLater = this.#way === 'time passes' && this.#chance.below(2) === 0
    const availableAt = isLater ? this.#now + 1 + this.#chance.below(4 * second) : null
    await this.#told(async (from) => {
      const given = items.map(({ id }) => ({ id, isDead, availableAt }))
      const changes = await engine.retry(this.#queue, partition, given)
      const to = this.history.next()
      for (const { fromId, to: became, id } of changes) {
        const nextId = became === 'waiting' ? id : null
        this.history.settled.push({ from, to, as: isDead ? 'dead' : 'retried', id: fromId, nextId })
      }
      if (isDead) this.#settled(items)
    })
  }

  async #told(settle: (from: number) => Promise<void>): Promise<void> {
    const from = this.history.next()
    try {
      await settle(from)
    } catch (error) {
      if (!(error instanceof ItemRefused)) throw error
      this.history.refused.push({ from, to: this.history.next(), id: error.itemId })
    }
  }

  /** Root ids of items that were settled before their producer had its answer. */
  readonly #early = new Set<string>()

  #settled(items: readonly Held[]): void {
    for (const { rootId } of items) if (!this.#left.delete(rootId)) this.#early.add(rootId)
    this.#endIfDone()
  }

  #endIfDone(): void {
    if (this.#isProduced && this.#left.size === 0) this.#over.abort()
  }
}

type Hand = Readonly<{ partition: number; items: readonly Held[] }>
