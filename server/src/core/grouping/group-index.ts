/**
 * The groups of one queue, as the template miner needs them: by fingerprint, and by bucket. A store that is the only
 * writer of its groups keeps one per queue; it must be equal to the stored rows.
 */
import type { Cause } from './cause.ts'
import { candidatesMax, type GroupMatch, matchGroup } from './match-group.ts'

type IndexedGroup = { id: number; template: string }
/** `mergedInto`: null, or the group that gets the letters of this one. */
export type StoredGroup = Readonly<{
  id: number
  fingerprint: string
  bucket: string
  template: string
  mergedInto: number | null
}>

export class GroupIndex {
  readonly #ids = new Map<string, number>()
  readonly #buckets = new Map<string, IndexedGroup[]>()
  readonly #mergedInto = new Map<number, number>()

  /** The number of groups, with those that became part of another one. */
  get size(): number {
    return this.#ids.size
  }

  /** Groups must be added in the order of their ids. */
  add({ id, fingerprint, bucket, template, mergedInto }: StoredGroup): void {
    this.#ids.set(fingerprint, id)
    if (mergedInto !== null) this.#mergedInto.set(id, mergedInto)
    else if (bucket !== '') {
      const groups = this.#buckets.get(bucket)
      if (groups === undefined) this.#buckets.set(bucket, [{ id, template }])
      else if (groups.length < candidatesMax) groups.push({ id, template })
    }
  }

  /** The group that was created for this cause, or the one that it became part of. */
  find(fingerprint: string): number | undefined {
    const id = this.#ids.get(fingerprint)
    return id === undefined ? undefined : this.resolve(id)
  }

  resolve(id: number): number {
    return this.#mergedInto.get(id) ?? id
  }

  match({ bucket, template }: Cause): GroupMatch {
    const groups = bucket === '' ? undefined : this.#buckets.get(bucket)
    return groups === undefined ? { kind: 'create' } : matchGroup(template, groups)
  }

  widen(bucket: string, { id, template, merged }: GroupMatch & { kind: 'widen' }): void {
    const groups = this.#buckets.get(bucket) ?? []
    const removed = new Set(merged)
    for (const group of groups) if (group.id === id) group.template = template
    if (removed.size === 0) return
    this.#buckets.set(
      bucket,
      groups.filter((group) => !removed.has(group.id)),
    )
    for (const [from, into] of this.#mergedInto) if (removed.has(into)) this.#mergedInto.set(from, id)
    for (const from of merged) this.#mergedInto.set(from, id)
  }
}
