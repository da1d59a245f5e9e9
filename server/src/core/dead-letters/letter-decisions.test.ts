import { describe, expect, it } from 'vitest'
import { aFailure, anItem, anOrigin, aQueue, hour, minute, noon } from '../../../test/make.ts'
import type { ItemHead, LeasedHead } from '../items/item.ts'
import type { Queue } from '../items/queue.ts'
import { copyBase, createLetterFacts, discardLetter, noDeadline, startRedrive } from './letter.ts'
import {
  decideRedrives,
  findDiscardRefusal,
  findRedriveRefusal,
  type RedriveCommandRules,
  type RedriveLookups,
  type RequestedRedrive,
} from './letter-decisions.ts'

const manual = aQueue().redrive
const letter = anItem({
  queue: 'graveyard',
  origin: anOrigin({ kind: 'queue', name: 'orders', partition: 5 }),
  failure: aFailure(),
  deadLetteredAt: noon,
  groupId: 7,
  letter: createLetterFacts(noon, manual, () => 0.5),
})
const redriving = startRedrive(letter, {
  actor: 'ann',
  campaign: null,
  target: { kind: 'queue', name: 'orders', partition: 0, id: 'sent' },
  edit: null,
  at: noon + minute,
  deadline: noDeadline,
})
const held: LeasedHead = {
  ...copyBase(letter),
  state: 'leased',
  lease: { holder: 'ann', deadline: noon + hour },
}
const resolved: ItemHead = { ...copyBase(letter), state: 'done', endedAt: noon }
const dead: ItemHead = { ...copyBase(letter), state: 'dead', endedAt: noon }
const discarded = discardLetter(letter, 'spam', noon)

describe('the refusal of a redrive by the state of the letter', () => {
  const rules = { isDeadAllowed: false, isCapped: true }

  it.each([
    ['missing', undefined],
    ['missing', anItem()],
    ['redriving', redriving],
    ['leased', held],
    ['resolved', resolved],
    ['discarded', discarded],
    ['dead', dead],
    ['exhausted', { ...letter, retryCount: 3 }],
    [undefined, letter],
    [undefined, { ...letter, availableAt: noon + hour }],
  ] as const)('each state has its own refusal: %s', (refusal, item) => {
    expect(findRedriveRefusal(item, rules, manual)).toBe(refusal)
  })

  it('a person may redrive DEAD letters, and letters that used all redrives of their policy', () => {
    expect(findRedriveRefusal(dead, { isDeadAllowed: true, isCapped: true }, manual)).toBeUndefined()
    const exhausted = { ...letter, retryCount: 3 }
    expect(findRedriveRefusal(exhausted, { isDeadAllowed: false, isCapped: false }, manual)).toBeUndefined()
  })
})

describe('the refusal of a discard', () => {
  it.each([
    [undefined, letter],
    [undefined, dead],
    ['redriving', redriving],
    ['leased', held],
    ['resolved', resolved],
    ['discarded', discarded],
    ['missing', anItem()],
  ] as const)('only waiting and DEAD letters can be discarded: %s', (refusal, item) => {
    expect(findDiscardRefusal(item)).toBe(refusal)
  })
})

describe('the decision about all redrives of a command', () => {
  type Request = RequestedRedrive & Readonly<{ edit?: number }>
  type Row = Readonly<{ queue: Queue }>
  type Lookups = RedriveLookups<Request, Readonly<{ queueRow: Row; letter: ItemHead }>, Row>

  const orders: Row = { queue: aQueue({ name: 'orders', partitions: 4 }) }
  const graveyard: Row = { queue: aQueue({ name: 'graveyard' }) }
  const rules: RedriveCommandRules = { isDeadAllowed: false, isCapped: true, now: noon }

  const decide = (
    requests: readonly Request[],
    changes: Partial<Lookups> = {},
    command: Partial<RedriveCommandRules> = {},
  ) => {
    const lookups: Lookups = {
      findLetter: () => ({ queueRow: graveyard, letter }),
      findCampaignRefusal: () => undefined,
      findTarget: (name) => (name === 'orders' ? orders : 'no-target'),
      hasEdit: () => true,
      ...changes,
    }
    const decisions = decideRedrives(requests, { ...rules, ...command }, lookups)
    return decisions.map((decision) =>
      typeof decision === 'string' ? decision : `${decision.target.queue.name}/${decision.partition}`,
    )
  }
  const one: Request = { letterId: 'one', queue: null }

  it('a letter goes to the partition of its origin, as far as the target queue has it', () => {
    expect(decide([one])).toEqual(['orders/1'])
  })

  it('the second redrive of a letter in one command is refused as redriving before anything else', () => {
    const nowhere = { ...one, queue: 'nowhere' }
    expect(decide([one, one, nowhere], { hasEdit: ({ queue }) => queue === null })).toEqual([
      'orders/1',
      'redriving',
      'redriving',
    ])
    expect(decide([nowhere, one, one])).toEqual(['no-target', 'orders/1', 'redriving'])
  })

  it('the first of several refusals is reported: letter, due time, campaign, target, edited version', () => {
    const due: Partial<RedriveCommandRules> = { isDueOnly: true }
    const all: Partial<Lookups> = {
      findLetter: () => ({ queueRow: graveyard, letter: dead }),
      findCampaignRefusal: () => 'resolved',
      findTarget: () => 'no-target',
      hasEdit: () => false,
    }
    const { findLetter: _, ...allButLetter } = all
    const { findCampaignRefusal: __, ...targetAndEdit } = allButLetter
    expect(decide([one], { ...all, findLetter: () => 'archived' }, due)).toEqual(['archived'])
    expect(decide([one], all, due)).toEqual(['dead'])
    expect(decide([one], allButLetter, due)).toEqual(['not-due'])
    expect(decide([one], allButLetter)).toEqual(['resolved'])
    expect(decide([one], targetAndEdit)).toEqual(['no-target'])
    expect(decide([one], { hasEdit: () => false })).toEqual(['no-edit'])
  })

  it('a letter is never sent to the queue that it is in', () => {
    const findTarget = () => {
      throw new Error('the target must not be looked up')
    }
    expect(decide([{ ...one, queue: 'graveyard' }], { findTarget })).toEqual(['dead-target'])
  })

  it('a letter whose origin is no queue of this store has no target unless the request names one', () => {
    const webhook = { ...letter, origin: anOrigin({ kind: 'webhook', cluster: null }) }
    const findLetter = () => ({ queueRow: graveyard, letter: webhook })
    const named = { letterId: 'two', queue: 'orders' }
    expect(decide([one, named], { findLetter })).toEqual(['no-target', 'orders/3'])
  })
})
