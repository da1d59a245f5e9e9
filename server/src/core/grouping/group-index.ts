/**
 * The groups of one queue, as the template miner needs them: by fingerprint, and by origin and bucket. A
 * store that is the only writer of its groups keeps one for each queue. It must be equal to the stored rows.
 */
import type { Cause } from '../dead-letters/cause.ts'
import { candidatesMax, type GroupMatch, type GroupTemplate, matchGroup } from './match-group.ts'

/** A group without a bucket takes no letters of other causes. */
export type IndexedGroup = Readonly<GroupTemplate & { fingerprint: string; origin: string; bucket: string }>

export class GroupIndex {
  readonly #ids = new Map<string, number>()
  readonly #candidates = new Map<string, GroupTemplate[]>()

  /** The number of groups, with those that are shown as another one. */
  get size(): number {
    return this.#ids.size
  }

  /** Groups must be added in the order of their ids. */
  add(group: IndexedGroup): void {
    this.#ids.set(group.fingerprint, group.id)
    if (group.bucket === '') return
    const key = toCandidateKey(group)
    const candidates = this.#candidates.get(key) ?? []
    if (candidates.length < candidatesMax) candidates.push({ id: group.id, template: group.template })
    this.#candidates.set(key, candidates)
  }

  /** The group that was created for this cause. */
  find(fingerprint: string): number | undefined {
    return this.#ids.get(fingerprint)
  }

  match(cause: Cause): GroupMatch {
    const candidates = this.#candidates.get(toCandidateKey(cause))
    return candidates === undefined ? { kind: 'create' } : matchGroup(cause.template, candidates)
  }

  /** Applies a match to the index. */
  widen(cause: Cause, { id, template, merged }: Extract<GroupMatch, { kind: 'widen' }>): void {
    const key = toCandidateKey(cause)
    const candidates = this.#candidates.get(key) ?? []
    this.#candidates.set(
      key,
      candidates
        .filter((candidate) => !merged.includes(candidate.id))
        .map((candidate) => (candidate.id === id ? { id, template } : candidate)),
    )
  }
}

function toCandidateKey({ origin, bucket }: Pick<Cause, 'origin' | 'bucket'>): string {
  return `${bucket}/${origin}`
}
