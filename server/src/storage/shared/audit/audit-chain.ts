/**
 * The hash chains of the audit log. The hash of a row covers its content and the hash of the row before it in
 * its chain, so a removed, changed, inserted or moved row no longer fits.
 *
 * SQLite has one chain. PostgreSQL has as many as transactions have ever written audit rows at the same time:
 * a transaction takes a chain that no other transaction holds, so that servers do not wait for each other
 * (docs/decisions). Within a chain, positions and ids increase.
 *
 * Chain 0 has the rows from before the chains: they have no hash of their own, and the head of chain 0 has
 * the hash over all of them.
 */
import { hash } from 'node:crypto'
import type { AuditHead, AuditLink, ChainedAuditRow, StoredAudit } from '../../contract/audit.ts'

export const rowsBeforeChains = 0
export const firstHash = '0'.repeat(64)

/** The stored form of a row without the hash: `details` is the text in the database. */
export type AuditContent = StoredAudit & Readonly<{ id: number }>

/**
 * The hash of a row, as hexadecimal text. Each field has its length in bytes in front, so that no two rows
 * have the same text. `redrive.audit_hash` in PostgreSQL computes the same for rows that SQL statements
 * write.
 */
export function hashAuditRow(previous: string, link: Omit<AuditLink, 'hash'>, row: AuditContent): string {
  const fields = [
    link.chain,
    link.position,
    row.id,
    row.at,
    row.actor,
    row.action,
    row.target,
    row.reason,
    row.requestId,
    row.namespace,
    row.address,
    row.keyPrefix,
    row.details,
  ]
  let text = previous
  for (const field of fields) {
    const value = String(field)
    text += `${Buffer.byteLength(value)}:${value}`
  }
  return hash('sha256', text)
}

/** The link of each row, behind the head of its chain. */
export function linkAuditRows(
  head: Pick<AuditHead, 'chain' | 'position' | 'hash'>,
  rows: readonly AuditContent[],
): AuditLink[] {
  const { chain } = head
  let { position, hash: previous } = head
  return rows.map((row) => {
    position++
    previous = hashAuditRow(previous, { chain, position }, row)
    return { chain, position, hash: previous }
  })
}

export type AuditFault = Readonly<{
  /** `unfinished`: the last rows of a chain are gone, or its head was changed. */
  kind: 'removed' | 'changed' | 'inserted' | 'moved' | 'unfinished' | 'changed-before-chains' | 'unexpected'
  sentence: string
}>

/** Where the check of a chain is. `missing`: positions that were skipped, with the row that follows them. */
type Progress = { position: number; hash: string; lastId: number; missing: Map<number, number> }

/** More faults than this are not reported one by one. */
const faultsMax = 1_000

/**
 * Checks the rows in the order of their ids. The heads are read before the first row: rows behind them are
 * newer than the check, and are not judged.
 */
export class AuditChecker {
  readonly #heads: ReadonlyMap<number, AuditHead>
  readonly #chains = new Map<number, Progress>()
  readonly #faults: AuditFault[] = []
  /** Links that were recorded elsewhere, and not found yet. */
  readonly #expected: Map<string, AuditLink>
  /** The largest id in a chain when the check began. */
  readonly #lastId: number
  checked = 0

  constructor(heads: readonly AuditHead[], expected: readonly AuditLink[] = []) {
    this.#expected = new Map(expected.map((link) => [linkKey(link), link]))
    this.#heads = new Map(heads.map((head) => [head.chain, head]))
    this.#lastId = heads.reduce((max, { lastId }) => Math.max(max, lastId), 0)
  }

  add(row: ChainedAuditRow): void {
    if (row.link === null) this.#addUnchained(row)
    else this.#addChained(row, row.link)
  }

  /** The faults, after all rows were added. */
  finish(): readonly AuditFault[] {
    for (const head of this.#heads.values()) this.#finishChain(head)
    for (const { chain, position, hash: text } of this.#expected.values())
      this.#report(
        'unexpected',
        `position ${position} of chain ${chain} does not have the expected hash ${text}`,
      )
    return this.#faults
  }

  #addUnchained(row: ChainedAuditRow): void {
    const head = this.#heads.get(rowsBeforeChains)
    if (head === undefined || row.id > head.lastId) {
      if (row.id <= this.#lastId) this.#report('inserted', `row ${row.id} is in no chain: it was inserted`)
      return
    }
    const progress = this.#progressOf(rowsBeforeChains)
    progress.position++
    const link = { chain: rowsBeforeChains, position: progress.position }
    progress.hash = hashAuditRow(progress.hash, link, row.stored)
    this.checked++
  }

  #addChained(row: ChainedAuditRow, link: AuditLink): void {
    const { chain, position } = link
    const head = this.#heads.get(chain)
    if (head === undefined) {
      if (row.id <= this.#lastId)
        this.#report('inserted', `row ${row.id} is in chain ${chain}, which does not exist: it was inserted`)
      return
    }
    if (position > head.position) {
      if (row.id <= head.lastId) this.#report('inserted', `row ${row.id} is behind the end of chain ${chain}`)
      return
    }
    this.checked++
    const progress = this.#progressOf(chain)
    if (position <= progress.position) {
      this.#addOutOfOrder(row, link, progress)
      return
    }
    const isNext = position === progress.position + 1
    for (let at = progress.position + 1; at < position && progress.missing.size < faultsMax; at++)
      progress.missing.set(at, row.id)
    // Behind a gap the hash of the predecessor is unknown: the row is the first one of the rest.
    if (isNext && hashAuditRow(progress.hash, link, row.stored) !== link.hash) {
      const before = progress.lastId === 0 ? '' : `, or the row before it in its chain, ${progress.lastId}`
      this.#report('changed', `row ${row.id} does not have its hash: it was changed${before}`)
    }
    if (this.#expected.get(linkKey(link))?.hash === link.hash) this.#expected.delete(linkKey(link))
    progress.position = position
    progress.hash = link.hash
    progress.lastId = row.id
  }

  #addOutOfOrder(row: ChainedAuditRow, { chain, position }: AuditLink, progress: Progress): void {
    const place = `position ${position} of chain ${chain}`
    if (progress.missing.delete(position))
      this.#report('moved', `row ${row.id} has ${place}, but its id is behind later rows: it was moved`)
    else this.#report('inserted', `row ${row.id} has ${place}, which another row has: it was inserted`)
  }

  #finishChain(head: AuditHead): void {
    const { chain } = head
    const progress = this.#progressOf(chain)
    for (const [position, nextId] of progress.missing) {
      const place = `position ${position} of chain ${chain}`
      this.#report('removed', `the row at ${place} is missing: it was removed before row ${nextId}`)
    }
    if (progress.position === head.position && progress.hash === head.hash) return
    if (chain === rowsBeforeChains) {
      const counts = `${progress.position} of ${head.position} rows`
      const sentence = `the rows up to ${head.lastId}, from before the chains, were changed: ${counts} are there`
      this.#report('changed-before-chains', sentence)
    } else if (progress.position < head.position) {
      const first = progress.position + 1
      const places = first === head.position ? `position ${first}` : `positions ${first} to ${head.position}`
      const end = `the last of them was row ${head.lastId}`
      this.#report('removed', `the rows at ${places} of chain ${chain} are missing; ${end}`)
    } else this.#report('unfinished', `the head of chain ${chain} does not have the hash of its last row`)
  }

  #progressOf(chain: number): Progress {
    let progress = this.#chains.get(chain)
    if (progress === undefined) {
      progress = { position: 0, hash: firstHash, lastId: 0, missing: new Map() }
      this.#chains.set(chain, progress)
    }
    return progress
  }

  #report(kind: AuditFault['kind'], sentence: string): void {
    if (this.#faults.length < faultsMax) this.#faults.push({ kind, sentence })
  }
}

function linkKey({ chain, position }: Omit<AuditLink, 'hash'>): string {
  return `${chain}:${position}`
}
