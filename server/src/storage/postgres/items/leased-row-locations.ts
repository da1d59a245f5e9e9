import type { Item } from '../../../core/item.ts'

/**
 * Where the rows are that this server leased. Completing is then spared the look-up, which is a third of what it
 * costs. A place says nothing by itself: the row may have moved on and another may be there. Who uses it
 * checks that the row is the one it means, and goes by the id when it is not.
 */
export class RowLocations {
  readonly #locations = new Map<Item['id'], RowLocation>()
  readonly #countMax: number

  constructor(countMax = locationsMax) {
    this.#countMax = countMax
  }

  /** The oldest goes when there are too many: its item is looked up, or never completed. */
  set(id: Item['id'], place: RowLocation): void {
    this.#locations.set(id, place)
    if (this.#locations.size <= this.#countMax) return
    for (const oldest of this.#locations.keys()) {
      this.#locations.delete(oldest)
      break
    }
  }

  /** It is not there any more, or will not be needed. */
  delete(id: Item['id']): void {
    this.#locations.delete(id)
  }

  /**
   * Where all of them are; undefined when one is not known. Each is used once: who is told that one was wrong goes
   * by the ids then.
   */
  takeAll(ids: readonly Item['id'][]): RowLocation[] | undefined {
    const taken: RowLocation[] = []
    for (const id of ids) {
      const place = this.#locations.get(id)
      if (place === undefined) continue
      this.#locations.delete(id)
      taken.push(place)
    }
    return taken.length === ids.length ? taken : undefined
  }
}

/** A `ctid` as one number, in whose order the rows stand: the page, then where it is on it. */
export type RowLocation = number
export const locationsPerPage = 2 ** 16

/** As PostgreSQL writes it: `(7,2)`. */
export function parseLocation(ctid: string): RowLocation {
  const comma = ctid.indexOf(',')
  return Number(ctid.slice(1, comma)) * locationsPerPage + Number(ctid.slice(comma + 1, -1))
}

/** About 10 MB. */
const locationsMax = 50_000
