import type { Instant } from '../../core/instant.ts'
import type { Connections } from './connection/connections.ts'
import type { Vacuum } from './connection/vacuum.ts'
import type { FirstMinuteCache } from './counts/time-bucket-retention.ts'
import type { LeaseCursors } from './items/lease-cursors.ts'
import type { GroupCache } from './letters/groups.ts'
import type { Repeats } from './letters/import-letters.ts'
import type { ForeseenLetters } from './letters/letter-snapshots.ts'
import type { QueueCache } from './queues/queue-cache.ts'

/** What every operation of one open store works with. */
export type StoreContext = Readonly<{
  connections: Connections
  queueCache: QueueCache
  cursors: LeaseCursors
  foreseen: ForeseenLetters
  groups: GroupCache
  firstMinute: FirstMinuteCache
  repeats: Repeats
  random: () => number
  /** For what a command without a time does. */
  now: () => Instant
  slots: CountSlots
  vacuum: Vacuum
}>

const slotsPerServer = 8
const serversTold = 4

/**
 * Which row of the counts a write adds to. Single statements have one per kind of work, transactions
 * take turns. Two servers may share theirs by chance: they then wait for each other, nothing worse.
 */
export class CountSlots {
  readonly #base: number
  #turn = 0

  constructor(random: () => number) {
    this.#base = Math.floor(random() * serversTold) * slotsPerServer
  }

  get produce(): number {
    return this.#base
  }

  get lease(): number {
    return this.#base + 1
  }

  get settle(): number {
    return this.#base + 2
  }

  get transaction(): number {
    this.#turn = (this.#turn + 1) % 4
    return this.#base + 4 + this.#turn
  }
}
