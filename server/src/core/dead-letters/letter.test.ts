import { describe, expect, it } from 'vitest'
import { aFailure, aLeasedItem, anItem, anOrigin, aQueue, hour, minute, noon } from '../../../test/make.ts'
import { historyMax, type ItemHead, type LetterFacts } from '../items/item.ts'
import {
  createLetterFacts,
  describeDiscard,
  discardLetter,
  endRedrive,
  isRedriving,
  listCampaignIds,
  noDeadline,
  type RedriveEnd,
  redriveHolder,
  redrivesKept,
  restoreLetter,
  startRedrive,
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
  deadLetteredAt: noon,
  groupId: 7,
  letter: createLetterFacts(noon, manual, () => 0.5),
})
const start = {
  actor: 'ann',
  campaign: null,
  target: { kind: 'queue', name: 'orders', partition: 0, id: 'sent' },
  edit: null,
  at: noon + minute,
  deadline: noDeadline,
} as const
const failedAgain = aFailure({ message: 'again', errorCode: 'http_500' })
const ended = (changes: Partial<RedriveEnd>): RedriveEnd => ({
  outcome: 'failed',
  failure: failedAgain,
  at: noon + 2 * minute,
  chance: 0.5,
  ...changes,
})

describe('a letter that is redriven', () => {
  const sent = startRedrive(letter, start)

  it('a redriven letter is leased by its redrive', () => {
    expect(sent).toMatchObject({ state: 'leased', lease: { holder: redriveHolder, deadline: noDeadline } })
    expect(isRedriving(sent)).toBe(true)
    expect(isRedriving(aLeasedItem({ origin, letter: letter.letter }))).toBe(false)
  })

  it('a redriven letter records who redrove it, when and to which queue', () => {
    expect(sent.letter).toMatchObject({
      requeueCount: 1,
      lastRedriveAt: start.at,
      nextRedriveAt: null,
      redrives: [{ number: 1, actor: 'ann', target: start.target, outcome: null, endedAt: null }],
    })
  })

  it('a redriven letter keeps its id and its failure', () => {
    expect(sent).toMatchObject({
      id: letter.id,
      rootId: letter.rootId,
      failure: letter.failure,
      retryCount: 0,
    })
  })

  it('a letter keeps the records of its newest redrives and counts all of them', () => {
    let item: ItemHead = letter
    for (let times = 0; times < redrivesKept + 5; times++) {
      item = endRedrive(startRedrive(item, start), ended({}), { ...manual, redrivesMax: 1_000 })
    }
    expect(item.letter?.redrives.length).toBe(redrivesKept)
    expect(item.letter?.redrives[0]?.number).toBe(redrivesKept + 5)
    expect(item.letter?.requeueCount).toBe(redrivesKept + 5)
    expect(item.retryCount).toBe(redrivesKept + 5)
  })
})

describe('the end of a redrive', () => {
  const sent = startRedrive(letter, start)

  it('a redrive that succeeds resolves the letter, which keeps its failure', () => {
    const after = endRedrive(sent, ended({ outcome: 'resolved', failure: null }), manual)
    expect(after).toMatchObject({
      state: 'done',
      endedAt: noon + 2 * minute,
      failure: letter.failure,
      retryCount: 0,
    })
    expect(after.letter?.redrives[0]).toMatchObject({ outcome: 'resolved', endedAt: noon + 2 * minute })
  })

  it('a redrive that fails returns the same letter with the new failure, and the old one in its history', () => {
    const after = endRedrive(sent, ended({}), manual)
    expect(after).toMatchObject({
      state: 'waiting',
      availableAt: null,
      id: letter.id,
      retryCount: 1,
      failure: failedAgain,
      history: [letter.failure],
    })
    expect(isRedriving(after)).toBe(false)
  })

  it('a letter at the limit becomes DEAD when its redrive fails or its outcome is unknown', () => {
    for (const outcome of ['failed', 'unknown'] as const) {
      const after = endRedrive({ ...sent, retryCount: 2 }, ended({ outcome }), manual)
      expect(after).toMatchObject({ state: 'dead', retryCount: 3, letter: { nextRedriveAt: null } })
    }
  })

  it('an automatic policy schedules the next redrive, with a longer delay each time', () => {
    const next = (retryCount: number) =>
      endRedrive({ ...sent, retryCount }, ended({}), auto).letter?.nextRedriveAt
    expect([0, 1].map(next)).toEqual([noon + 2 * minute + 2 * minute, noon + 2 * minute + 4 * minute])
  })

  it('a redrive with an unknown outcome is not repeated automatically: it may have been processed', () => {
    const after = endRedrive(sent, ended({ outcome: 'unknown' }), auto)
    expect(after).toMatchObject({ state: 'waiting', retryCount: 1, letter: { nextRedriveAt: null } })
  })

  it('a redrive that ends without a failure keeps the failure of the letter', () => {
    const after = endRedrive(sent, ended({ failure: null }), manual)
    expect(after).toMatchObject({ failure: letter.failure, history: [] })
  })
})

describe('a new letter', () => {
  it('a new letter waits for a person, or for the delay of an automatic policy', () => {
    expect(createLetterFacts(noon, manual, () => 0.5).nextRedriveAt).toBeNull()
    expect(createLetterFacts(noon, auto, () => 0.5).nextRedriveAt).toBe(noon + minute)
    expect(createLetterFacts(noon, { ...auto, redrivesMax: 0 }, () => 0.5).nextRedriveAt).toBeNull()
  })
})

describe('a discarded letter', () => {
  it('a discarded letter has the reason, and its automatic redrive is cancelled', () => {
    const due = { ...letter, letter: createLetterFacts(noon, auto, () => 0.5) }
    const after = discardLetter(due, 'spam', noon + hour)
    expect(after).toMatchObject({
      state: 'discarded',
      endedAt: noon + hour,
      letter: { discardReason: 'spam', nextRedriveAt: null },
    })
  })

  it('a letter that a campaign discarded names the campaign until it is restored', () => {
    const campaign = '0ujtsYcgvSTl8PAuAdqWYSMnLOv'
    const discarded = discardLetter(letter, 'spam', noon, campaign)
    const facts = discarded.letter as LetterFacts
    expect(describeDiscard(facts)).toBe(`spam (campaign ${campaign})`)
    expect(listCampaignIds(facts)).toEqual([campaign])
    const restored = restoreLetter(discarded, noon + hour, auto).letter as LetterFacts
    expect(listCampaignIds(restored)).toEqual([])
  })

  it('a discarded letter that is restored is open again', () => {
    const after = restoreLetter(discardLetter(letter, 'spam', noon), noon + hour, auto)
    expect(after).toMatchObject({
      state: 'waiting',
      availableAt: null,
      letter: { discardReason: '', restoredAt: noon + hour },
    })
    expect(after).not.toHaveProperty('endedAt')
  })

  it('a restored letter is DEAD if it was DEAD, or if it reached the redrive limit', () => {
    const dead = { ...letter, state: 'dead', endedAt: noon } as const
    expect(restoreLetter(dead, noon + hour, auto)).toMatchObject({ state: 'dead', endedAt: noon + hour })
    const usedUp = discardLetter({ ...letter, retryCount: auto.redrivesMax }, 'spam', noon)
    expect(restoreLetter(usedUp, noon + hour, auto)).toMatchObject({ state: 'dead', endedAt: noon + hour })
    const none = { ...auto, redrivesMax: 0 }
    expect(restoreLetter(discardLetter(letter, 'spam', noon), noon, none).state).toBe('waiting')
  })
})

describe('failures over the life of an item', () => {
  it('the history keeps the newest failures first, up to its limit', () => {
    let item: Pick<ItemHead, 'failure' | 'history'> = { failure: null, history: [] }
    for (let number = 0; number < historyMax + 5; number++) {
      item = withFailure(item, aFailure({ message: `${number}` }))
    }
    expect(item.failure?.message).toBe(`${historyMax + 4}`)
    expect(item.history.map(({ message }) => message)).toEqual(
      Array.from({ length: historyMax }, (_, index) => `${historyMax + 3 - index}`),
    )
  })

  it('failures in the history keep only the first 2,000 characters of their stack', () => {
    const long = aFailure({ stack: 'x'.repeat(100_000) })
    expect(withFailure({ failure: long, history: [] }, failedAgain).history[0]?.stack.length).toBe(2_000)
  })
})
