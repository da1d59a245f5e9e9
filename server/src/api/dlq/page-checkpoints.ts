/**
 * Remembers cursors at known offsets of a list, so that a numbered page far from the start does not read the
 * list from its start again.
 */
import type { Letters } from '../../letters/letters.ts'
import type { LetterCursor } from '../../storage/contract/letters.ts'

/** A cursor with `offset` letters before it; a null cursor is the start of the list. */
export type Checkpoint = Readonly<{
  offset: number
  /** Number of steps and time that it took to get here from the start. */
  steps: number
  walkedMs: number
  cursor: LetterCursor | null
  isEnd: boolean
}>
type StoredCheckpoint = Checkpoint & Readonly<{ atMs: number }>

const listStart: Checkpoint = { offset: 0, steps: 0, walkedMs: 0, cursor: null, isEnd: false }
const checkpointMsMax = 60_000
/** A checkpoint that took no more than this to reach is not stored: reading from the start costs little. */
const cheapStepsMax = 2
const cheapMsMax = 100
const checkpointsMax = 64
const listsMax = 100

/** One cache per store: a process may serve several stores. */
const cacheByLetters = new WeakMap<Letters, Map<string, StoredCheckpoint[]>>()

export interface Checkpoints {
  store(checkpoint: Checkpoint): void
  /** The last checkpoint at or before `offset`. */
  findBefore(offset: number): Checkpoint
  /** The last stored checkpoint, or the given one if that is further. */
  findLast(checkpoint: Checkpoint): Checkpoint
}

/** `list` identifies filter and order. */
export function openCheckpoints(letters: Letters, list: string): Checkpoints {
  const lists = cacheByLetters.get(letters) ?? new Map<string, StoredCheckpoint[]>()
  cacheByLetters.set(letters, lists)
  const readFresh = (): readonly StoredCheckpoint[] =>
    (lists.get(list) ?? []).filter(({ atMs }) => performance.now() - atMs < checkpointMsMax)
  return {
    store: (checkpoint) => {
      const isCheap = checkpoint.steps <= cheapStepsMax && checkpoint.walkedMs <= cheapMsMax
      if (isCheap || checkpoint.isEnd) return
      const others = readFresh().filter(
        (other) => other.offset !== checkpoint.offset || isBefore(checkpoint, other),
      )
      // Half of the checkpoints are enough; the letters between them are read again.
      const kept = others.length < checkpointsMax ? others : others.filter((_, index) => index % 2 === 1)
      // A map keeps the order of insertion. Deleting first makes this list the newest.
      lists.delete(list)
      lists.set(list, [...kept, { ...checkpoint, atMs: performance.now() }])
      const [oldest] = lists.keys()
      if (lists.size > listsMax && oldest !== undefined) lists.delete(oldest)
    },
    findBefore: (offset) =>
      readFresh()
        // The first page is always read from the start, where new letters appear.
        .filter((checkpoint) => offset > 0 && checkpoint.offset <= offset)
        .reduce<Checkpoint>(chooseLater, listStart),
    findLast: (checkpoint) => readFresh().reduce<Checkpoint>(chooseLater, checkpoint),
  }
}

function isBefore(a: Checkpoint, b: Checkpoint): boolean {
  return a.offset < b.offset || (a.offset === b.offset && a.steps < b.steps)
}

function chooseLater(a: Checkpoint, b: Checkpoint): Checkpoint {
  return isBefore(a, b) ? b : a
}
