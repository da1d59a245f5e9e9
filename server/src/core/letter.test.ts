import { describe, expect, it } from 'vitest'
import { aFailure, aLeasedItem, anItem, anOrigin, aQueue, hour, minute, noon } from '../../test/make.ts'
import { historyMax, type Item, type Leased } from './item.ts'
import {
  arrivedAt,
  baseOf,
  discardLetter,
  endRedrive,
  isRedriving,
  newLetterFacts,
  noDeadline,
  type RedriveEnd,
  redriveHolder,
  redrivesKept,
  restoreLetter,
  startRedrive,
  whyNotDiscarded,
  whyNotRedriven,
  withFailure,
} from './letter.ts'

const manual = aQueue().redrive
const auto = {
  mode: 'auto',
  redrivesMax: 3,
  backoff: { kind: 'exponential', delayUsMin: minute, delayUsMax: hour, jitter: 0 },
} as const

const origin = anOrigin({ kind: 'queue', name: 'orders' })
const letter = anItem({
  queue: 'graveyard',
  origin,
  failure: aFailure(),
  diedAt: noon,
  groupId: 7,
  letter: newLetterFacts(noon, manual, () => 0.5),
})
const start = {
  actor: 'ann',
  campaign: null,
  target: { kind: 'queue', name: 'orders', partition: 0, id: 'sent' },
  edit: null,
  at: noon + minute,
  deadline: noDeadline,
} as const
const failedAgain = aFailure({ message: 'again', reason: 'http_500' })
const ended = (changes: Partial<RedriveEnd>): RedriveEnd => ({
  outcome: 'failed',
  failure: failedAgain,
  at: noon + 2 * minute,
  chance: 0.5,
  ...changes,
})
const ends = (item: Item): Item => ({ ...baseOf(item), state: 'done', endedAt: noon })

describe('a letter that is sent back', () => {
  const sent = startRedrive(letter, start)

  it('is held by its redrive until that ends', () => {
    expect(sent).toMatchObject({ state: 'leased', lease: { holder: redriveHolder, deadline: noDeadline } })
    expect(isRedriving(sent)).toBe(true)
    expect(isRedriving(aLeasedItem({ origin, letter: letter.letter }))).toBe(false)
  })

  it('remembers who sent it, when and where', () => {
    expect(sent.letter).toMatchObject({
      requeues: 1,
      lastRedriveAt: start.at,
      nextRedriveAt: null,
      redrives: [{ number: 1, actor: 'ann', target: start.target, outcome: null, endedAt: null }],
    })
  })

  it('keeps its id, its bytes and its failure', () => {
    expect(sent).toMatchObject({ id: letter.id, rootId: letter.rootId, failure: letter.failure, redrives: 0 })
  })

  it('remembers its newest redrives only, and still counts them all', () => {
    let item: Item = letter
    for (let times = 0; times < redrivesKept + 5; times++) {
      item = endRedrive(startRedrive(item, start), ended({}), { ...manual, redrivesMax: 1_000 })
    }
    expect(item.letter?.redrives.length).toBe(redrivesKept)
    expect(item.letter?.redrives[0]?.number).toBe(redrivesKept + 5)
    expect(item.letter?.requeues).toBe(redrivesKept + 5)
    expect(item.redrives).toBe(redrivesKept + 5)
  })
})

describe('a redrive that ended', () => {
  const sent = startRedrive(letter, start)

  it('well resolves the letter, which keeps its failure as the proof', () => {
    const after = endRedrive(sent, ended({ outcome: 'resolved', failure: null }), manual)
    expect(after).toMatchObject({
      state: 'done',
      endedAt: noon + 2 * minute,
      failure: letter.failure,
      redrives: 0,
    })
    expect(after.letter?.redrives[0]).toMatchObject({ outcome: 'resolved', endedAt: noon + 2 * minute })
  })

  it('badly gives the same letter back, with the new failure and the old one behind it', () => {
    const after = endRedrive(sent, ended({}), manual)
    expect(after).toMatchObject({
      state: 'waiting',
      availableAt: null,
      id: letter.id,
      redrives: 1,
      failure: failedAgain,
      history: [letter.failure],
    })
    expect(isRedriving(after)).toBe(false)
  })

  it('at the cap is DEAD, also when nobody knows how it ended', () => {
    for (const outcome of ['failed', 'unknown'] as const) {
      const after = endRedrive({ ...sent, redrives: 2 }, ended({ outcome }), manual)
      expect(after).toMatchObject({ state: 'dead', redrives: 3, letter: { nextRedriveAt: null } })
    }
  })

  it('goes again by itself where the policy says so, later each time', () => {
    const next = (redrives: number) =>
      endRedrive({ ...sent, redrives }, ended({}), auto).letter?.nextRedriveAt
    expect([0, 1].map(next)).toEqual([noon + 2 * minute + 2 * minute, noon + 2 * minute + 4 * minute])
  })

  it('unknown does not go again by itself: it may have been processed', () => {
    const after = endRedrive(sent, ended({ outcome: 'unknown' }), auto)
    expect(after).toMatchObject({ state: 'waiting', redrives: 1, letter: { nextRedriveAt: null } })
  })

  it('without a failure to tell keeps the one there is', () => {
    const after = endRedrive(sent, ended({ failure: null }), manual)
    expect(after).toMatchObject({ failure: letter.failure, history: [] })
  })
})

describe('a new letter', () => {
  it('waits for a person, or goes back after the delay of its policy', () => {
    expect(newLetterFacts(noon, manual, () => 0.5).nextRedriveAt).toBeNull()
    expect(newLetterFacts(noon, auto, () => 0.5).nextRedriveAt).toBe(noon + minute)
    expect(newLetterFacts(noon, { ...auto, redrivesMax: 0 }, () => 0.5).nextRedriveAt).toBeNull()
  })
})

describe('whether a letter can be sent back', () => {
  const sent = startRedrive(letter, start)
  const held: Leased = { ...baseOf(letter), state: 'leased', lease: { holder: 'ann', deadline: noon + hour } }
  const dead: Item = { ...baseOf(letter), state: 'dead', endedAt: noon }
  const everybody = { isDeadAllowed: false, isCapped: true }

  it.each([
    ['missing', undefined],
    ['missing', anItem()],
    ['redriving', sent],
    ['leased', held],
    ['resolved', ends(letter)],
    ['discarded', discardLetter(letter, 'spam', noon)],
    ['dead', dead],
    ['exhausted', { ...letter, redrives: 3 }],
    [undefined, letter],
    [undefined, { ...letter, availableAt: noon + hour }],
  ] as const)('says %s', (why, item) => {
    expect(whyNotRedriven(item, everybody, manual)).toBe(why)
  })

  it('is a matter of who asks: a person may send what is DEAD, and beyond the cap', () => {
    expect(whyNotRedriven(dead, { isDeadAllowed: true, isCapped: true }, manual)).toBeUndefined()
    const often = { ...letter, redrives: 3 }
    expect(whyNotRedriven(often, { isDeadAllowed: false, isCapped: false }, manual)).toBeUndefined()
  })

  it.each([
    [undefined, letter],
    [undefined, dead],
    ['redriving', sent],
    ['leased', held],
    ['resolved', ends(letter)],
    ['discarded', discardLetter(letter, 'spam', noon)],
    ['missing', anItem()],
  ] as const)('and given up says %s', (why, item) => {
    expect(whyNotDiscarded(item)).toBe(why)
  })
})

describe('a letter that is given up', () => {
  it('says why, and goes nowhere by itself any more', () => {
    const due = { ...letter, letter: newLetterFacts(noon, auto, () => 0.5) }
    const after = discardLetter(due, 'spam', noon + hour)
    expect(after).toMatchObject({
      state: 'discarded',
      endedAt: noon + hour,
      letter: { discardReason: 'spam', nextRedriveAt: null },
    })
  })

  it('and restored is open again', () => {
    const after = restoreLetter(discardLetter(letter, 'spam', noon), noon + hour, auto)
    expect(after).toMatchObject({
      state: 'waiting',
      availableAt: null,
      letter: { discardReason: '', restoredAt: noon + hour },
    })
    expect(after).not.toHaveProperty('endedAt')
  })

  it('and restored is DEAD when it was, or when its redrives are used up: nobody could send it as PENDING', () => {
    const dead = { ...letter, state: 'dead', endedAt: noon } as const
    expect(restoreLetter(dead, noon + hour, auto)).toMatchObject({ state: 'dead', endedAt: noon + hour })
    const usedUp = discardLetter({ ...letter, redrives: auto.redrivesMax }, 'spam', noon)
    expect(restoreLetter(usedUp, noon + hour, auto)).toMatchObject({ state: 'dead', endedAt: noon + hour })
    const none = { ...auto, redrivesMax: 0 }
    expect(restoreLetter(discardLetter(letter, 'spam', noon), noon, none).state).toBe('waiting')
  })

  it('arrived when the store got it, or got it back, whenever it died', () => {
    const old = { ...letter, createdAt: noon, diedAt: noon - 99 * hour }
    expect(arrivedAt(old)).toBe(noon)
    expect(arrivedAt(restoreLetter(discardLetter(old, '', noon), noon + hour, auto))).toBe(noon + hour)
  })
})

describe('failures over the life of an item', () => {
  it('are kept newest first, as many as are kept', () => {
    let item: Pick<Item, 'failure' | 'history'> = { failure: null, history: [] }
    for (let number = 0; number < historyMax + 5; number++) {
      item = withFailure(item, aFailure({ message: `${number}` }))
    }
    expect(item.failure?.message).toBe(`${historyMax + 4}`)
    expect(item.history.map(({ message }) => message)).toEqual(
      Array.from({ length: historyMax }, (_, index) => `${historyMax + 3 - index}`),
    )
  })

  it('that are past are not kept at any length', () => {
    const long = aFailure({ stack: 'x'.repeat(100_000) })
    expect(withFailure({ failure: long, history: [] }, failedAgain).history[0]?.stack.length).toBe(2_000)
  })
})
