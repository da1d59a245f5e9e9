import type { Item } from '../../../core/items/item.ts'

/**
 * The locations of the rows that this server has leased. With them a complete need not look the rows up by
 * id, which is a third of its cost. A location proves nothing: the row may have moved, and another row may be
 * there now. The caller checks that it found the right row, and otherwise looks it up by its id.
 */
export class RowLocations {
  readonly #locations = new Map<Item['id'], RowLocation>()
  readonly #countMax: number

  constructor(countMax = locationsMax) {
    this.#countMax = countMax
  }

  /** Above the limit, the oldest location is dropped: its item is then looked up by its id. */
  set(id: Item['id'], location: RowLocation): void {
    this.#locations.set(id, location)
    if (this.#locations.size <= this.#countMax) return
    for (const oldest of this.#locations.keys()) {
      this.#locations.delete(oldest)
      break
    }
  }

  delete(id: Item['id']): void {
    this.#locations.delete(id)
  }

  /**
   * Removes and returns the locations of these items; undefined if one of them is unknown. Each location is
   * used once, so a caller that found another row there and repeats its work uses the ids.
   */
  takeAll(ids: readonly Item['id'][]): RowLocation[] | undefined {
    const taken: RowLocation[] = []
    for (const id of ids) {
      const location = this.#locations.get(id)
      if (location === undefined) continue
      this.#locations.delete(id)
      taken.push(location)
    }
    return taken.length === ids.length ? taken : undefined
  }
}

/**
 * A `ctid` as one number: the page, then the position on the page. It has the order of the rows in the table.
 */
export type RowLocation = number
export const locationsPerPage = 2 ** 16

/** From the text of PostgreSQL, such as `(7,2)`. */
export function parseLocation(ctid: string): RowLocation {
  const comma = ctid.indexOf(',')
  return Number(ctid.slice(1, comma)) * locationsPerPage + Number(ctid.slice(comma + 1, -1))
}

/** About 10 MB. */
const locationsMax = 50_000
