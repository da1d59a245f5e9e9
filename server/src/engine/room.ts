/**
 * A room is what this server holds of one queue: its policy, the requests that are under way, and how
 * many items each partition has for leasing.
 *
 * Those numbers are a hint: whoever leases asks the store, and the store decides. While this is the only
 * server they are never too low; with several, what is missing is found by `refresh`. Too high costs a
 * lease that finds nothing.
 */
import { type Clock, type Instant, later } from '../core/instant.ts'
import type { Leased } from '../core/item.ts'
import type { Queue } from '../core/queue.ts'
import { isExpired } from '../core/transitions.ts'
import { KnownError } from '../errors.ts'
import { Lane } from '../storage/lane.ts'
import type {
  Change,
  Complete,
  Extend,
  NewItem,
  Produced,
  Retry,
  Settled,
  Storage,
} from '../storage/storage.ts'
import { Alarm } from './alarm.ts'
import { type Kind, type Run, runsOf } from './arrivals.ts'
import { deal } from './deal.ts'
import type { LeasedItems, ProducedItems, ProduceOptions } from './engine.ts'
import { whenLate } from './in-time.ts'
import { itemRefused } from './refused.ts'
import { Signals } from './signals.ts'

export type RoomParts = Readonly<{
  storage: Storage
  clock: Clock
  /** Unprocessed requests per queue; above it they are refused. */
  requestsMax: number
  /** A batch that takes longer is not waited for by those who called: its outcome is unknown to them. */
  batchMsMax: number
  /** Changes by which items became available, or moved to another queue. */
  onChanges(changes: readonly Change[]): void
  /** Items of the queue became available: other servers may have leases that wait. */
  onAvailable(queue: string): void
  /** Something will be due then. */
  onDue(at: number): void
  /** The queue was deleted by somebody else; one of its name may be there again. */
  onGone(): void
}>

type Settling<T> = { resolve(value: T): void; reject(error: unknown): void }
type Producing = Settling<ProducedItems> &
  Readonly<{
    arrival: number
    weight: number
    items: readonly NewItem[]
    partition: number | undefined
    once: ProduceOptions['once']
  }>
type Completing = Settling<readonly Change[]> &
  Readonly<{ arrival: number; weight: number; command: Complete | Retry | Extend }>
type Leasing = Settling<LeasedItems> & {
  readonly arrival: number
  readonly clientId: string
  readonly countMax: number
  readonly timeoutMs: number
  readonly deadline: number
  readonly signal: AbortSignal | undefined
  /** The store is being asked for its items. */
  isServed: boolean
  isGone: boolean
  /** What it is given, while items are being dealt. */
  dealt: Leased[] | undefined
}

const batchItemsMax = 2_000
const dealtMax = 4_000
/** One is written while the answers to the other go out, and their callers come back. */
const batchesMax = 2
const dealsMax = 2
/** Fewer are not worth dividing among two. */
const shareMin = 128

export class Room {
  queue: Queue
  readonly #parts: RoomParts
  readonly #produces: Lane<Producing>
  readonly #completes: Lane<Completing>
  readonly #retries: Lane<Completing>
  /** Those that wait, by client, in the order in which they came. */
  readonly #leases = new Map<string, Leasing>()
  readonly #alarm = new Alarm((now) => this.#endLeases(now))
  readonly #signals = new Signals((signal) => this.#abortLeases(signal))
  #available: number[]
  /** How many became available since the room was opened: what came while the store was asked is not in its answer. */
  readonly #gained: number[]
  /** How many were leased since then, or are being leased. */
  readonly #taken: number[]
  /** How many are being stored. */
  readonly #placing: number[]
  #refreshes = 0
  readonly #deals = new Set<Promise<void>>()
  #isWaking = false
  #puttingBack: Promise<unknown> = Promise.resolve()
  #isHeld = false
  /** Counts those who call, so that what was held can be done in the order in which it came. */
  #arrivals = 0
  /** Leases that came later wait for their turn: what was held is being released. */
  #servedUpTo = Number.POSITIVE_INFINITY
  #isReleasing = false
  #releasing: Promise<void> = Promise.resolve()
  #closed: KnownError | undefined

  constructor(queue: Queue, available: readonly number[], parts: RoomParts) {
    this.queue = queue
    this.#parts = parts
    this.#available = Array.from({ length: queue.partitions }, (_, partition) => available[partition] ?? 0)
    this.#gained = this.#available.map(() => 0)
    this.#taken = this.#available.map(() => 0)
    this.#placing = this.#available.map(() => 0)
    const options = { weightMax: batchItemsMax, batchesMax }
    this.#produces = new Lane(options, (batch) => this.#writeProduces(batch))
    this.#completes = new Lane({ ...options, batchesMax: 1 }, (batch) => this.#writeSettles(batch))
    this.#retries = new Lane({ ...options, batchesMax: 1 }, (batch) => this.#writeSettles(batch))
  }

  get waiting(): Readonly<{ produce: number; lease: number; complete: number; inFlight: number }> {
    return {
      produce: this.#produces.waiting,
      lease: this.#leases.size,
      complete: this.#completes.waiting + this.#retries.waiting,
      inFlight: this.#produces.inFlight + this.#completes.inFlight + this.#retries.inFlight,
    }
  }

  get hasLeasers(): boolean {
    return this.#leases.size > 0
  }

  produce(items: readonly NewItem[], options: ProduceOptions): Promise<ProducedItems> {
    return this.#call(this.#produces, options, (settling: Settling<ProducedItems>) => ({
      ...settling,
      arrival: ++this.#arrivals,
      weight: items.length,
      items,
      partition: options.partition,
      once: options.once,
    }))
  }

  settle(command: Complete | Retry | Extend, options: CallTime): Promise<readonly Change[]> {
    const lane = command.op === 'complete' ? this.#completes : this.#retries
    const weight = 'ids' in command ? command.ids.length : command.items.length
    return this.#call(lane, options, (settling: Settling<readonly Change[]>) => ({
      ...settling,
      arrival: ++this.#arrivals,
      weight,
      command,
    }))
  }

  lease(clientId: string, countMax: number, timeoutMs: number, signal?: AbortSignal): Promise<LeasedItems> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    if (this.#isHeld && this.#unprocessed() >= this.#parts.requestsMax)
      return Promise.reject(this.#overloaded())
    if (this.#leases.has(clientId)) {
      return Promise.reject(
        new KnownError('CLIENT_ID_BUSY', `client ${clientId} waits for items of ${this.queue.name} already`),
      )
    }
    return new Promise<LeasedItems>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const now = performance.now()
      const leasing: Leasing = {
        arrival: ++this.#arrivals,
        clientId,
        countMax,
        timeoutMs,
        deadline: now + timeoutMs,
        signal,
        isServed: false,
        isGone: false,
        dealt: undefined,
        resolve,
        reject,
      }
      this.#leases.set(clientId, leasing)
      this.#alarm.by(leasing.deadline, now)
      if (signal !== undefined) this.#signals.hear(signal)
      this.wake()
    })
  }

  /** Those whose time has come; says when the next one's comes. */
  #endLeases(now: number): number {
    let next = Number.POSITIVE_INFINITY
    for (const leasing of this.#leases.values()) {
      if (leasing.deadline > now) next = Math.min(next, leasing.deadline)
      else {
        const sentence = `no items in queue ${this.queue.name} within ${leasing.timeoutMs} ms`
        this.#leaseGone(leasing, new KnownError('LEASE_TIMEOUT', sentence))
      }
    }
    return next
  }

  #abortLeases(signal: AbortSignal): void {
    for (const leasing of this.#leases.values()) {
      if (leasing.signal === signal) this.#leaseGone(leasing, signal.reason)
    }
  }

  /** What is on its way to it is put back. */
  #leaseGone(leasing: Leasing, error: unknown): void {
    leasing.isGone = true
    this.#leave(leasing, error)
  }

  /** Items of a partition became available, or went, by somebody else's doing. */
  count(partition: number, by: number): void {
    this.#add(this.#available, partition, by)
    if (by <= 0) return
    this.#add(this.#gained, partition, by)
    this.wake()
  }

  /** Looks at what is really there, and what the queue is now: another server may have changed both. */
  async refresh(): Promise<void> {
    const { storage } = this.#parts
    const { name, createdAt, partitions } = this.queue
    const gained = [...this.#gained]
    const [queue, counts] = await Promise.all([storage.getQueue(name), storage.counts({ queue: name })])
    if (queue === null || queue.createdAt !== createdAt || queue.partitions !== partitions) {
      // Who waits here waits for a queue that is gone, though one of its name may be there.
      this.#parts.onGone()
      return
    }
    this.queue = queue
    // Too many is harmless, too few would leave items lying: what came meanwhile may be counted twice.
    for (const { partition, waiting } of counts)
      this.#available[partition] = waiting + this.#gainedSince(gained, partition)
    this.#refreshes++
    this.wake()
  }

  hold(isHeld: boolean): void {
    const wasHeld = this.#isHeld
    this.#isHeld = isHeld
    if (isHeld) for (const lane of this.#lanes()) lane.hold(true)
    else if (wasHeld && !this.#isReleasing) this.#releasing = this.#release()
  }

  /** What came while it was held, in the order in which it came: each kind by itself would overtake the others. */
  async #release(): Promise<void> {
    this.#isReleasing = true
    this.#servedUpTo = 0
    // What comes meanwhile comes after; unless it is held again.
    while (!this.#isHeld) {
      const runs = this.#takeHeld()
      if (runs.length === 0) break
      for (const { arrival, work } of runs) {
        await work()
        this.#servedUpTo = arrival
        await this.#serveReleased()
      }
    }
    this.#servedUpTo = Number.POSITIVE_INFINITY
    this.#isReleasing = false
    // Held again meanwhile, it stays so.
    for (const lane of this.#lanes()) lane.hold(this.#isHeld)
    this.wake()
  }

  #takeHeld(): Run[] {
    const heldIn = <R extends { readonly arrival: number; readonly weight: number }>(lane: Lane<R>): Kind => {
      const requests = lane.drain()
      const arrivals = requests.map(({ arrival }) => arrival)
      return { arrivals, work: (from, to) => lane.workThrough(requests.slice(from, to)) }
    }
    const leases = [...this.#leases.values()].filter(({ arrival }) => arrival > this.#servedUpTo)
    return runsOf([
      heldIn(this.#produces),
      heldIn(this.#completes),
      heldIn(this.#retries),
      // They stay where they are, and are served once their turn has come.
      { arrivals: leases.map(({ arrival }) => arrival), work: async () => {} },
    ])
  }

  /** Those whose turn has come, with what there is for them now. */
  async #serveReleased(): Promise<void> {
    while (this.#deals.size < dealsMax && this.#startDeal());
    while (this.#deals.size > 0) await Promise.all(this.#deals)
  }

  /** Refuses what waits, and resolves when what is being written is done. */
  async close(error: KnownError): Promise<void> {
    this.#closed = error
    this.#refuseLeases(error)
    for (const lane of this.#lanes()) for (const { reject } of lane.drain()) reject(error)
    await this.#idle()
  }

  /** Refuses new calls and leases that wait; the other calls that wait are done first. */
  async finish(error: KnownError): Promise<void> {
    if (this.#isHeld) return this.close(error)
    this.#closed = error
    this.#refuseLeases(error)
    await this.#idle()
  }

  async #idle(): Promise<void> {
    await this.#releasing
    await Promise.all([...this.#lanes().map((lane) => lane.whenIdle()), ...this.#deals])
    await this.#puttingBack
  }

  #lanes(): readonly Pick<Lane<Producing | Completing>, 'drain' | 'hold' | 'whenIdle'>[] {
    return [this.#produces, this.#completes, this.#retries]
  }

  #refuseLeases(error: KnownError): void {
    for (const leasing of this.#leases.values()) this.#leaseGone(leasing, error)
  }

  /** Serves waiting leases if there is something for them. */
  wake(): void {
    if (this.#isWaking || this.#leases.size === 0 || this.#deals.size >= dealsMax) return
    if (!this.#available.some((count) => count > 0)) return
    this.#isWaking = true
    // Those of the same turn of the event loop go together.
    void Promise.resolve().then(() => {
      this.#isWaking = false
      while (this.#deals.size < dealsMax && this.#startDeal());
    })
  }

  /** False when there is nobody to serve, or nothing to serve with. */
  #startDeal(): boolean {
    if (this.queue.isPaused || (this.#isHeld && !this.#isReleasing)) return false
    const hands = deal(this.#nextToServe(), this.#available, dealtMax)
    if (hands.length === 0) return false
    const plans = hands.map(({ partition, turns }) => {
      for (const leasing of turns) leasing.isServed = true
      const spokenFor = Math.min(turns.length, this.#available[partition] ?? 0)
      this.#add(this.#available, partition, -spokenFor)
      this.#add(this.#taken, partition, spokenFor)
      return { partition, turns, spokenFor }
    })
    const dealing = this.#deal(plans).then(() => {
      this.#deals.delete(dealing)
      // Who arrived meanwhile, or was left with nothing, may have a turn now.
      this.wake()
    })
    this.#deals.add(dealing)
    return true
  }

  /** Those who came first, as many as their share of all. See storage/lane.ts for why not all. */
  #nextToServe(): Leasing[] {
    let asked = 0
    for (const { countMax } of this.#leases.values()) asked += countMax
    const share = Math.max(Math.ceil(asked / dealsMax), shareMin)
    const next: Leasing[] = []
    let weight = 0
    for (const leasing of this.#leases.values()) {
      if (leasing.isServed) continue
      if (leasing.arrival > this.#servedUpTo) break
      if (next.length > 0 && weight + leasing.countMax > share) break
      next.push(leasing)
      weight += leasing.countMax
    }
    return next
  }

  async #deal(plans: readonly Plan[]): Promise<void> {
    const { storage, clock } = this.#parts
    const now = clock.now()
    const before = { gained: [...this.#gained], taken: [...this.#taken], refreshes: this.#refreshes }
    const late = this.#whenLate((error) => {
      // What they are given after all is put back.
      for (const { turns } of plans)
        for (const leasing of new Set(turns)) if (!leasing.isGone) this.#leaseGone(leasing, error)
    })
    try {
      const results = await storage.write(
        plans.map(({ partition, turns }) => ({
          op: 'lease' as const,
          queue: this.queue.name,
          partition,
          holders: turns.map(({ clientId }) => clientId),
          now,
        })),
      )
      this.#parts.onDue(later(now, this.queue.leaseUs))
      for (const [index, plan] of plans.entries()) {
        const items = results[index] ?? []
        this.#book(plan, items.length, before)
        this.#serve(plan, items, now)
      }
    } catch (error) {
      // The store failed: those who were to be served are told, and may ask again.
      for (const plan of plans) {
        this.#add(this.#available, plan.partition, plan.spokenFor)
        this.#add(this.#taken, plan.partition, -plan.spokenFor)
        for (const leasing of new Set(plan.turns)) if (!leasing.isGone) this.#leave(leasing, error)
      }
    } finally {
      late.off()
    }
  }

  /** Tells when the store has not answered for too long. What it writes goes on, and is booked when it is done. */
  #whenLate(tell: (error: KnownError) => void): Readonly<{ off(): void }> {
    const { batchMsMax } = this.#parts
    return whenLate(batchMsMax, () => {
      const sentence = `the store did not answer within ${batchMsMax} ms, so whether the request was done is unknown`
      tell(new KnownError('STORE_UNAVAILABLE', sentence))
    })
  }

  #add(counts: number[], partition: number, by: number): void {
    counts[partition] = Math.max((counts[partition] ?? 0) + by, 0)
  }

  #gainedSince(gained: readonly number[], partition: number): number {
    return (this.#gained[partition] ?? 0) - (gained[partition] ?? 0)
  }

  /** Compares what was planned with what there was. */
  #book({ partition, turns, spokenFor }: Plan, count: number, before: Before): void {
    const takenSince = (this.#taken[partition] ?? 0) - (before.taken[partition] ?? 0)
    const more = count - spokenFor
    this.#add(this.#taken, partition, more)
    // A refresh meanwhile may have counted without these items already, or with others that came after.
    if (before.refreshes !== this.#refreshes) return
    if (count === turns.length) this.#add(this.#available, partition, -more)
    // Fewer than asked for: there were no more, whatever the hint said.
    else this.#available[partition] = Math.max(this.#gainedSince(before.gained, partition) - takenSince, 0)
  }

  #serve({ partition, turns }: Plan, items: readonly Leased[], now: Instant): void {
    const unwanted: Leased[] = []
    const expired: Leased[] = []
    for (const [index, item] of items.entries()) {
      const leasing = turns[index] as Leasing
      // Its time was over before anybody came for it, and the clockwork has not been here since.
      if (isExpired(item, now)) expired.push(item)
      else if (leasing.isGone) unwanted.push(item)
      else if (leasing.dealt === undefined) leasing.dealt = [item]
      else leasing.dealt.push(item)
    }
    for (const leasing of turns) leasing.isServed = false
    for (const leasing of turns) {
      const { dealt } = leasing
      if (dealt === undefined) continue
      leasing.dealt = undefined
      const { resolve } = leasing
      this.#seatLeft(leasing)
      resolve({ partition, items: dealt })
    }
    if (unwanted.length > 0) {
      const back = this.#putBack(partition, unwanted).then((isBack) => {
        if (isBack) this.count(partition, unwanted.length)
      })
      this.#puttingBack = Promise.all([this.#puttingBack, back])
    }
    if (expired.length > 0) {
      // Nobody is to have them, nor to find them again and again: once they are taken away, what is there is counted.
      this.#available[partition] = 0
      const back = this.#putBack(partition, expired).then(() => this.#parts.onDue(now))
      this.#puttingBack = Promise.all([this.#puttingBack, back])
    }
  }

  /** As if they had never been leased. */
  async #putBack(partition: number, items: readonly Leased[]): Promise<boolean> {
    const ids = items.map(({ id }) => id)
    try {
      await this.#parts.storage.write([
        { op: 'unlease', queue: this.queue.name, partition, ids, now: this.#parts.clock.now() },
      ])
      return true
    } catch {
      // Their leases end by themselves, as if the client had gone a moment later.
      return false
    }
  }

  #leave(leasing: Leasing, error: unknown): void {
    const { reject } = leasing
    this.#seatLeft(leasing)
    reject(error)
  }

  #seatLeft(leasing: Leasing): void {
    this.#leases.delete(leasing.clientId)
    if (this.#leases.size === 0) this.#alarm.off()
    if (leasing.signal !== undefined) this.#signals.drop(leasing.signal)
    // A map is rebuilt now and then, and what was in it just then lives on with the old one until the next
    // full collection: without this so would the items that it was given.
    leasing.resolve = nothing
    leasing.reject = nothing
  }

  async #writeProduces(batch: readonly Producing[]): Promise<void> {
    const { storage, clock } = this.#parts
    const now = clock.now()
    const placed = batch.map((request) => {
      const partition = request.partition ?? this.#emptiest()
      this.#add(this.#placing, partition, request.items.length)
      return { request, partition }
    })
    const groups = groupsOf(placed)
    const late = this.#whenLate((error) => {
      for (const { reject } of batch) reject(error)
    })
    try {
      const results = await storage.write(
        groups.map(({ partition, requests, once }) => ({
          op: 'produce' as const,
          queue: this.queue.name,
          partition,
          items:
            requests.length === 1 ? (requests[0] as Producing).items : requests.flatMap(({ items }) => items),
          now,
          ...(once !== undefined && { once: { key: once.key, until: later(now, once.windowUs) } }),
        })),
      )
      let isAvailable = false
      for (const [index, { requests }] of groups.entries()) {
        const { ids, partition, isRepeat } = results[index] as Produced
        let at = 0
        for (const request of requests) {
          const own = requests.length === 1 ? ids : ids.slice(at, at + request.items.length)
          at += request.items.length
          if (!isRepeat) isAvailable = this.#produced(partition, request.items, now) || isAvailable
          request.resolve({ partition, ids: own, isRepeat })
        }
      }
      if (isAvailable) {
        this.#parts.onAvailable(this.queue.name)
        this.wake()
      }
    } catch (error) {
      await this.#oneByOne(batch, error, (one) => this.#writeProduces([one]))
    } finally {
      late.off()
      for (const { partition, request } of placed) this.#add(this.#placing, partition, -request.items.length)
    }
  }

  /** The fewest items that nobody holds, with those on their way; the lowest number among equals. */
  #emptiest(): number {
    let best = 0
    let fewest = Number.POSITIVE_INFINITY
    for (const [partition, count] of this.#available.entries()) {
      const load = count + (this.#placing[partition] ?? 0)
      if (load < fewest) [best, fewest] = [partition, load]
    }
    return best
  }

  /** Counts what was produced; true when some of it can be leased now. */
  #produced(partition: number, items: readonly NewItem[], now: Instant): boolean {
    let ready = 0
    for (const item of items) {
      if (item.availableAt != null) this.#parts.onDue(item.availableAt)
      else if (item.lease === undefined) ready++
      if (item.expireDeadline !== undefined) this.#parts.onDue(item.expireDeadline)
    }
    if (ready > 0) this.#parts.onDue(later(now, this.queue.expireUs))
    this.#add(this.#available, partition, ready)
    this.#add(this.#gained, partition, ready)
    return ready > 0
  }

  async #writeSettles(batch: readonly Completing[]): Promise<void> {
    const late = this.#whenLate((error) => {
      for (const { reject } of batch) reject(error)
    })
    try {
      const results: readonly Settled[] = await this.#parts.storage.write(batch.map(({ command }) => command))
      for (const [index, request] of batch.entries()) {
        const result = results[index] as Settled
        if (!result.isSettled) request.reject(itemRefused(request.command, result.refused))
        else {
          if (request.command.op !== 'complete') this.#parts.onChanges(result.changes)
          request.resolve(result.changes)
        }
      }
    } catch (error) {
      await this.#oneByOne(batch, error, (one) => this.#writeSettles([one]))
    } finally {
      late.off()
    }
  }

  /** One request that cannot be obeyed rejects the whole list: alone, each gets its own answer. */
  async #oneByOne<R extends Settling<never>>(
    batch: readonly R[],
    error: unknown,
    work: (one: R) => Promise<void>,
  ): Promise<void> {
    const isOfOne = error instanceof KnownError && error.status < 500
    if (batch.length > 1 && isOfOne) for (const one of batch) await work(one)
    else for (const { reject } of batch) reject(error)
  }

  #call<T, R extends Settling<T> & { weight: number }>(
    lane: Lane<R>,
    { timeoutMs, signal }: CallTime,
    make: (settling: Settling<T>) => R,
  ): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    if (this.#unprocessed() >= this.#parts.requestsMax) return Promise.reject(this.#overloaded())
    return new Promise<T>((resolve, reject) => {
      const request = make({ resolve, reject })
      lane.add(request)
      if (timeoutMs === undefined && signal === undefined) return
      // Once it is being written it is answered with what became of it, however long that takes.
      const giveUp = (error: unknown) => {
        if (lane.withdraw(request)) reject(error)
      }
      const onAbort = () => giveUp(signal?.reason)
      const timer =
        timeoutMs === undefined
          ? undefined
          : setTimeout(
              () => giveUp(new KnownError('CALL_TIMEOUT', `not done within ${timeoutMs} ms`)),
              timeoutMs,
            )
      signal?.addEventListener('abort', onAbort, { once: true })
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      request.resolve = (value) => {
        done()
        resolve(value)
      }
      request.reject = (error) => {
        done()
        reject(error)
      }
    })
  }

  #unprocessed(): number {
    const { produce, complete, lease } = this.waiting
    return produce + complete + (this.#isHeld ? lease : 0)
  }

  #overloaded(): KnownError {
    return new KnownError(
      'QUEUE_OVERLOADED',
      `queue ${this.queue.name} has ${this.#parts.requestsMax} requests to do`,
    )
  }
}

function nothing(): void {}

/** What was known when the store was asked. */
type Before = Readonly<{ gained: readonly number[]; taken: readonly number[]; refreshes: number }>
/** What one deal asks of a partition: `spokenFor` of its items were believed to be there. */
type Plan = Readonly<{ partition: number; turns: readonly Leasing[]; spokenFor: number }>
type CallTime = Readonly<{ timeoutMs?: number | undefined; signal?: AbortSignal | undefined }>
type Group = { partition: number; once: ProduceOptions['once']; requests: Producing[] }

/** Requests for one partition become one command, in order; one with a key stays by itself. */
function groupsOf(placed: readonly Readonly<{ request: Producing; partition: number }>[]): Group[] {
  const groups: Group[] = []
  const open = new Map<number, Group>()
  for (const { request, partition } of placed) {
    const { once } = request
    const group = once === undefined ? open.get(partition) : undefined
    if (group !== undefined) {
      group.requests.push(request)
      continue
    }
    const made: Group = { partition, once, requests: [request] }
    groups.push(made)
    // What comes after a keyed request stays after it.
    if (once === undefined) open.set(partition, made)
    else open.delete(partition)
  }
  return groups
}
