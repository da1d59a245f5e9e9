import type { Instant } from '../../core/instant.ts'
import type { Connections } from './connections.ts'
import type { Cursors } from './cursors.ts'
import type { GroupBook } from './groups.ts'
import type { Horizon } from './horizon.ts'
import type { Repeats } from './insert-sourced.ts'
import type { QueueBook } from './queues.ts'
import type { ForeseenLetters } from './seen-letters.ts'
import type { Vacuum } from './vacuum.ts'

/** What every operation of one open store works with. */
export type Store = Readonly<{
  connections: Connections
  book: QueueBook
  cursors: Cursors
  foreseen: ForeseenLetters
  groups: GroupBook
  horizon: Horizon
  repeats: Repeats
  random: () => number
  /** For what a command without a time does. */
  now: () => Instant
  slots: Slots
  vacuum: Vacuum
}>

const slotsPerServer = 8
const serversTold = 4

/**
 * Which row of the counts a write adds to. Single statements have one per kind of work, transactions
 * take turns. Two servers may share theirs by chance: they then wait for each other, nothing worse.
 */
export class Slots {
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
