/** Further values of a label are counted together as `otherLabel`. */
export const labelValuesMax = 500
export const otherLabel = '(others)'

/**
 * Sums by the value of a label. The number of values is limited, because each is a series in the monitoring
 * system.
 */
export class LabelledTotals {
  readonly #totals = new Map<string, number>()

  add(label: string, by: number): void {
    if (by === 0) return
    const isNew = !this.#totals.has(label)
    const key = isNew && this.#totals.size >= labelValuesMax ? otherLabel : label
    this.#totals.set(key, (this.#totals.get(key) ?? 0) + by)
  }

  entries(): Iterable<readonly [label: string, total: number]> {
    return this.#totals.entries()
  }
}
