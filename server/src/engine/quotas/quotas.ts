/**
 * The quotas of namespaces, checked before items are written and before requests are handled.
 *
 * Most namespaces have no quota: then a check is a look at a map. The quotas are read again while requests
 * arrive, at most once a second, so a change is effective on every server within two seconds.
 *
 * Items and bytes of a namespace are compared with what the store had at the last reading, plus everything
 * that this server has admitted since. So one server never exceeds a quota. Several servers together can
 * exceed it by the items that the others admit between two readings. Before a call is refused, the store is
 * read again.
 */
import type { Namespace, Quota } from '../../core/access/records.ts'
import { systemNamespace } from '../../core/items/queue.ts'
import { KnownError } from '../../errors.ts'
import type { Usage } from '../../storage/contract/counts.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'

export type QuotaName = 'queues' | 'items' | 'bytes' | 'requests'

export interface Quotas {
  /**
   * Undefined: the namespace has no quota for items. Otherwise resolves when the items may be written, with a
   * function to call when the write has ended, and rejects with QUOTA_EXCEEDED.
   */
  admit(namespace: string, count: number, measureBytes: () => number): Promise<() => void> | undefined
  /** Throws RATE_EXCEEDED if one of the namespaces has used its requests of this second. */
  countRequest(namespaces: readonly string[]): void
  /** Counts an error of the store that is a refusal. */
  note(namespace: string, error: unknown): void
}

export type QuotaParts = Readonly<{
  storage: Pick<StoreReads, 'listAccess' | 'readUsage'>
  onRefused(quota: QuotaName, namespace: string): void
  onError(error: unknown): void
  /** A clock that only goes forward. */
  nowMs?: () => number
}>

/** Older quotas are read again in the background. */
const staleMs = 1_000
/** Calls wait for quotas that are older than this. */
const oldMs = 2_000
/** Between two readings of the items of a namespace that is full. */
const fullMs = 100
/** Bytes are added up for at most this part of the time, because it takes longer the more items there are. */
const bytesShare = 0.05
const namespacesPerRead = 1_000

export function createQuotas(parts: QuotaParts): Quotas {
  const nowMs = parts.nowMs ?? (() => performance.now())
  const { storage, onRefused, onError } = parts
  let spaces: ReadonlyMap<string, Space> | undefined
  let readAtMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  const read = async (): Promise<void> => {
    const startedMs = nowMs()
    const found = await listQuotas(storage)
    const before = spaces
    spaces = new Map(
      found.map(({ name, quota = {} }) => {
        const space = before?.get(name) ?? new Space(name, storage, nowMs)
        space.quota = quota
        return [name, space]
      }),
    )
    readAtMs = startedMs
  }
  const refresh = (): Promise<void> => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
  /** Undefined: the quotas in memory are recent enough. */
  const waitUntilKnown = (): Promise<void> | undefined => {
    const ageMs = nowMs() - readAtMs
    if (ageMs < staleMs) return undefined
    const refreshing = refresh()
    if (ageMs >= oldMs) return refreshing
    refreshing.catch(onError)
    return undefined
  }
  const enter = async (name: string, count: number, measureBytes: () => number): Promise<() => void> => {
    await waitUntilKnown()
    const space = spaces?.get(name)
    if (space === undefined || !space.limitsItems) return () => {}
    const added = { items: count, bytes: space.quota.bytesMax === undefined ? 0 : measureBytes() }
    const refusal = await space.add(added)
    if (refusal === undefined) return () => space.end(added)
    onRefused(refusal, name)
    throw createQuotaError(space, refusal)
  }

  return {
    admit: (name, count, measureBytes) => {
      if (name === systemNamespace) return undefined
      if (waitUntilKnown() === undefined && spaces?.get(name)?.limitsItems !== true) return undefined
      return enter(name, count, measureBytes)
    },
    countRequest: (names) => {
      waitUntilKnown()?.catch(onError)
      for (const name of names) {
        const space = spaces?.get(name)
        if (space === undefined || space.takeRequest()) continue
        onRefused('requests', name)
        throw new KnownError(
          'RATE_EXCEEDED',
          `namespace ${name} has used its quota of ${space.quota.requestsPerSecondMax} requests per second`,
        )
      }
    },
    note: (namespace, error) => {
      if (error instanceof KnownError && error.code === 'QUOTA_EXCEEDED') onRefused('queues', namespace)
    },
  }
}

async function listQuotas(storage: QuotaParts['storage']): Promise<readonly Namespace[]> {
  const found: Namespace[] = []
  for (let from = ''; ; ) {
    const page = await storage.listAccess({ of: 'namespaces', from, countMax: namespacesPerRead })
    found.push(...page.filter(({ quota }) => quota !== undefined))
    const last = page.at(-1)
    if (last === undefined || page.length < namespacesPerRead) return found
    // The smallest name behind the last one.
    from = `${last.name}\u0001`
  }
}

/** The bytes of these items that count for a quota. */
export function sumPayloads(items: readonly Readonly<{ payload: Uint8Array }>[]): number {
  return items.reduce((sum, { payload }) => sum + payload.byteLength, 0)
}

type Amount = Readonly<{ items: number; bytes: number }>

/** A namespace with a quota, and the part of it that is in use. */
class Space {
  quota: Quota = {}
  readonly #name: string
  readonly #storage: Pick<StoreReads, 'readUsage'>
  readonly #nowMs: () => number
  #stored: Usage | undefined
  #readAtMs = Number.NEGATIVE_INFINITY
  #readMs = 0
  #reading: Promise<void> | undefined
  /** Admitted since the last reading, or in a write that had not ended when it started. */
  #added = { items: 0, bytes: 0 }
  /** Admitted, and their write has not ended. */
  #pending = { items: 0, bytes: 0 }
  #requests = 0
  #requestsAtMs = Number.NEGATIVE_INFINITY

  constructor(name: string, storage: Pick<StoreReads, 'readUsage'>, nowMs: () => number) {
    this.#name = name
    this.#storage = storage
    this.#nowMs = nowMs
  }

  get limitsItems(): boolean {
    return this.quota.itemsMax !== undefined || this.quota.bytesMax !== undefined
  }

  get stored(): Usage | undefined {
    return this.#stored
  }

  /** Returns the quota that these items would exceed; undefined: they are admitted. */
  async add(amount: Amount): Promise<'items' | 'bytes' | undefined> {
    if (this.#needsReading(oldMs)) await this.#refresh()
    else if (this.#needsReading(staleMs)) this.#refresh().catch(() => {})
    let exceeded = this.#findExceeded(amount)
    if (exceeded !== undefined && this.#needsReading(fullMs)) {
      await this.#refresh()
      exceeded = this.#findExceeded(amount)
    }
    if (exceeded !== undefined) return exceeded
    add(this.#added, amount, 1)
    add(this.#pending, amount, 1)
    return undefined
  }

  /** The write of these items has ended. If it failed, they count until the next reading. */
  end(amount: Amount): void {
    add(this.#pending, amount, -1)
  }

  /** A bucket that holds the requests of one second. */
  takeRequest(): boolean {
    const limit = this.quota.requestsPerSecondMax
    if (limit === undefined) return true
    const now = this.#nowMs()
    const refilled = this.#requests + ((now - this.#requestsAtMs) * limit) / 1_000
    this.#requests = Math.min(Math.max(1, limit), refilled)
    this.#requestsAtMs = now
    if (this.#requests < 1) return false
    this.#requests--
    return true
  }

  #needsReading(ageMs: number): boolean {
    const pauseMs = this.quota.bytesMax === undefined ? 0 : this.#readMs / bytesShare
    return this.#stored === undefined || this.#nowMs() - this.#readAtMs >= Math.max(ageMs, pauseMs)
  }

  #findExceeded({ items, bytes }: Amount): 'items' | 'bytes' | undefined {
    const { itemsMax, bytesMax } = this.quota
    const stored = this.#stored ?? { items: 0, bytes: 0 }
    if (itemsMax !== undefined && stored.items + this.#added.items + items > itemsMax) return 'items'
    if (bytesMax !== undefined && (stored.bytes ?? 0) + this.#added.bytes + bytes > bytesMax) return 'bytes'
    return undefined
  }

  #refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    const startedMs = this.#nowMs()
    // Writes that ended before the reading are certainly part of it.
    const ended = {
      items: this.#added.items - this.#pending.items,
      bytes: this.#added.bytes - this.#pending.bytes,
    }
    const isWithBytes = this.quota.bytesMax !== undefined
    this.#stored = await this.#storage.readUsage({ namespace: this.#name, isWithBytes })
    add(this.#added, ended, -1)
    this.#readAtMs = startedMs
    this.#readMs = this.#nowMs() - startedMs
  }
}

function add(sum: { items: number; bytes: number }, amount: Amount, sign: 1 | -1): void {
  sum.items += sign * amount.items
  sum.bytes += sign * amount.bytes
}

function createQuotaError({ quota, stored }: Space, exceeded: 'items' | 'bytes'): KnownError {
  const max = exceeded === 'items' ? quota.itemsMax : quota.bytesMax
  const used = exceeded === 'items' ? stored?.items : stored?.bytes
  return new KnownError(
    'QUOTA_EXCEEDED',
    `the namespace has ${used ?? 0} ${exceeded}, and these would exceed its quota of ${max} ${exceeded}`,
  )
}
