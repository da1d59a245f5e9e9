import type { Connections } from './connection/connections.ts'
import type { DatabaseClock } from './connection/database-clock.ts'
import type { Vacuum } from './connection/vacuum.ts'
import type { FirstMinuteCache } from './counts/time-bucket-retention.ts'
import type { LeaseCursors } from './items/lease-cursors.ts'
import type { GroupCache } from './letters/groups.ts'
import type { RepeatedImports } from './letters/import-letters.ts'
import type { PrefetchedLetters } from './letters/letter-snapshots.ts'
import type { QueueCache } from './queues/queue-cache.ts'

/** Everything that the operations of one open store share. */
export type StoreContext = Readonly<{
  connections: Connections
  queueCache: QueueCache
  cursors: LeaseCursors
  prefetchedLetters: PrefetchedLetters
  groups: GroupCache
  firstMinute: FirstMinuteCache
  repeats: RepeatedImports
  random: () => number
  clock: DatabaseClock
  slots: CountSlots
  vacuum: Vacuum
}>

const slotsPerServer = 8
const slotGroups = 4

/**
 * Which row of the counts a write adds to. Counts are spread over several rows (slots), so that writes rarely
 * wait for each other. Single statements have one slot per kind of work; transactions use four slots in
 * rotation. Two servers can have the same slots by chance, and then only wait for each other.
 */
export class CountSlots {
  readonly #base: number
  #rotation = 0

  constructor(random: () => number) {
    this.#base = Math.floor(random() * slotGroups) * slotsPerServer
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
    this.#rotation = (this.#rotation + 1) % 4
    return this.#base + 4 + this.#rotation
  }
}
