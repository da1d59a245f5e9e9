/**
 * The traces of items that this server leased and that were not settled since, by item id. A call that
 * completes or retries items names only their ids. Bounded: beyond the limit the oldest is forgotten, and a
 * span then lacks a link.
 */
import type { ItemId } from '../../core/ids/ids.ts'
import type { Leased } from '../../core/items/item.ts'
import type { TraceContext } from '../../core/trace/trace-context.ts'
import { readTraceHeaders } from '../../core/trace/trace-headers.ts'

const tracesMax = 10_000

export class LeasedTraces {
  readonly #byId = new Map<ItemId, TraceContext>()

  /** Returns the traces of the items, in their order. */
  add(items: readonly Leased[]): readonly (TraceContext | undefined)[] {
    return items.map(({ id, headers }) => {
      const context = readTraceHeaders(headers)
      if (context?.isSampled === true) this.#put(id, context)
      return context
    })
  }

  get(id: ItemId): TraceContext | undefined {
    return this.#byId.get(id)
  }

  /** Returns the traces of the items, and forgets them. */
  take(ids: readonly ItemId[]): readonly (TraceContext | undefined)[] {
    return ids.map((id) => {
      const context = this.#byId.get(id)
      if (context !== undefined) this.#byId.delete(id)
      return context
    })
  }

  #put(id: ItemId, context: TraceContext): void {
    this.#byId.delete(id)
    this.#byId.set(id, context)
    if (this.#byId.size <= tracesMax) return
    const [oldest] = this.#byId.keys()
    if (oldest !== undefined) this.#byId.delete(oldest)
  }
}
