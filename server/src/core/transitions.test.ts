import { describe, expect, it } from 'vitest'
import {
  aFailure,
  aLeasedItem,
  anItem,
  anOrigin,
  aQueue,
  day,
  hour,
  minute,
  noon,
  second,
} from '../../test/make.ts'
import { createDeadLetter, deadPartition } from './dead-letter.ts'
import { newLetterFacts, startRedrive } from './letter.ts'
import {
  complete,
  createFailure,
  dueAt,
  expireDeadlineWhenPromoted,
  killWithoutLetter,
  onDue,
  retryItem,
} from './transitions.ts'

const givenBack = { availableAt: null, isDead: false, error: null }
const letter = { origin: anOrigin(), sourceId: 'main/payments/3/42/billing', diedAt: noon }

describe('a completed item', () => {
  it('is gone, unless its queue keeps what is done', () => {
    expect(complete(aLeasedItem(), aQueue())).toMatchObject({ to: 'remove', as: 'completed' })
    expect(complete(aLeasedItem(), aQueue({ keepDoneUs: hour }))).toMatchObject({ to: 'done' })
  })

  it('stays as done when it is a dead letter: it is the proof', () => {
    expect(complete(aLeasedItem(letter), aQueue())).toMatchObject({ to: 'done' })
  })
})

describe('an item given back', () => {
  it('waits again, at once or when the worker says', () => {
    expect(retryItem(aLeasedItem(), givenBack, aQueue(), noon)).toMatchObject({
      to: 'waiting',
      availableAt: null,
      cause: 'retry',
    })
    const later = retryItem(aLeasedItem(), { ...givenBack, availableAt: noon + hour }, aQueue(), noon)
    expect(later).toMatchObject({ to: 'waiting', availableAt: noon + hour })
  })

  const retry = { kind: 'fixed', delayUs: second, jitter: 0 } as const

  it.each([
    ['at once', null, null],
    ['at a time of its own', noon + hour, noon + hour],
    ['when the retry policy says', undefined, noon + second],
  ])('dies once its attempts exceed the bound, and not before: %s', (_, asked, availableAt) => {
    const rules = aQueue({ attemptsMax: 3, deadQueue: 'graveyard', retry })
    const fates = [1, 2, 3, 4, 5].map((attempts) =>
      retryItem(aLeasedItem({ attempts }), { ...givenBack, availableAt: asked }, rules, noon),
    )
    const waits = { to: 'waiting', availableAt, cause: 'retry' }
    const dies = { to: 'move', deadQueue: 'graveyard', cause: 'attempts' }
    expect(fates).toMatchObject([waits, waits, waits, dies, dies])
  })

  it('obeys its own bound of attempts before that of its queue, be it lower or higher', () => {
    const fate = (attemptsMax: number, ofQueue: number) =>
      retryItem(aLeasedItem({ attempts: 3, attemptsMax }), givenBack, aQueue({ attemptsMax: ofQueue }), noon)
    expect(fate(2, 9)).toMatchObject({ cause: 'attempts' })
    expect(fate(3, 1)).toMatchObject({ cause: 'retry' })
  })

  it('dies in place when it is a dead letter, by the same bound', () => {
    const rules = aQueue({ attemptsMax: 2, deadQueue: 'graveyard' })
    const fates = [2, 3].map(
      (attempts) => retryItem(aLeasedItem({ ...letter, attempts }), givenBack, rules, noon).to,
    )
    expect(fates).toEqual(['waiting', 'dead'])
  })

  it('never dies of attempts where no bound is set', () => {
    expect(retryItem(aLeasedItem({ attempts: 65_536 }), givenBack, aQueue(), noon).to).toBe('waiting')
  })

  it('dies at once when the worker declares it dead', () => {
    const fate = retryItem(
      aLeasedItem(),
      { ...givenBack, isDead: true },
      aQueue({ deadQueue: 'graveyard' }),
      noon,
    )
    expect(fate).toMatchObject({ to: 'move', deadQueue: 'graveyard', cause: 'declared-dead' })
  })
})

describe('an item that dies', () => {
  const isDead = { ...givenBack, isDead: true }

  it('is deleted, counted as dropped, where there is no dead queue', () => {
    expect(retryItem(aLeasedItem(), isDead, aQueue(), noon)).toMatchObject({ to: 'remove', as: 'dropped' })
  })

  it('is kept in place where the queue says so', () => {
    expect(retryItem(aLeasedItem(), isDead, aQueue({ onDead: 'keep' }), noon)).toMatchObject({ to: 'dead' })
  })

  it('is never deleted or moved when it is a dead letter', () => {
    for (const rules of [aQueue(), aQueue({ deadQueue: 'graveyard' }), aQueue({ onDead: 'keep' })]) {
      expect(retryItem(aLeasedItem(letter), isDead, rules, noon)).toMatchObject({ to: 'dead' })
    }
  })
})

describe('the passing of time', () => {
  it('ends a lease: back to waiting, or dead when out of attempts or expired', () => {
    const rules = aQueue({ attemptsMax: 2, deadQueue: 'graveyard' })
    expect(onDue(aLeasedItem(), rules, noon)).toMatchObject({ to: 'waiting', cause: 'lease-end' })
    for (const attempts of [2, 3]) {
      const fate = onDue(aLeasedItem({ attempts }), rules, noon)
      expect(fate).toMatchObject({ to: 'move', cause: 'attempts' })
    }
    expect(onDue(aLeasedItem(), rules, noon + day)).toMatchObject({ to: 'move', cause: 'expire' })
  })

  it('expires what waited too long, but never a dead letter', () => {
    expect(onDue(anItem(), aQueue(), noon + day)).toMatchObject({
      to: 'remove',
      as: 'dropped',
      cause: 'expire',
    })
    expect(dueAt(anItem(letter), aQueue())).toBeNull()
    expect(onDue(aLeasedItem(letter), aQueue(), noon + 999 * day)).toMatchObject({ to: 'waiting' })
  })

  it('makes a scheduled item available, with a full wait ahead of it', () => {
    const item = anItem({ availableAt: noon + 2 * day })
    expect(onDue(item, aQueue(), noon + 2 * day)).toMatchObject({ to: 'waiting', availableAt: null })
    expect(expireDeadlineWhenPromoted(item, aQueue(), noon + 2 * day)).toBe(noon + 3 * day)
    expect(expireDeadlineWhenPromoted(item, aQueue(), noon + hour)).toBe(noon + day)
  })

  it('forgets what was done long enough ago', () => {
    const { lease, ...rest } = aLeasedItem()
    const done = { ...rest, state: 'done', endedAt: noon } as const
    expect(dueAt(done, aQueue({ keepDoneUs: hour }))).toBe(noon + hour)
    expect(dueAt({ ...done, ...letter }, aQueue({ keepDoneUs: hour }))).toBeNull()
    expect(onDue(done, aQueue(), noon + hour)).toMatchObject({ to: 'remove', as: 'forgotten' })
  })

  it('is due at the lease deadline, the schedule, or the expiry', () => {
    expect(dueAt(aLeasedItem(), aQueue())).toBe(noon + minute)
    expect(dueAt(anItem({ availableAt: noon + second }), aQueue())).toBe(noon + second)
    expect(dueAt(anItem(), aQueue())).toBe(noon + day)
  })
})

describe('the failure of an item', () => {
  it('keeps the first time and takes the newest error', () => {
    const before = aFailure({ firstFailedAt: noon - hour, lastFailedAt: noon - minute })
    const error = { errorClass: 'Timeout', message: 'no answer in 30 s' }
    const after = createFailure(aLeasedItem({ attempts: 4, failure: before }), error, 'retried', noon)
    expect(after).toEqual({
      reason: 'retried',
      errorClass: 'Timeout',
      message: 'no answer in 30 s',
      stack: '',
      attempts: 4,
      firstFailedAt: noon - hour,
      lastFailedAt: noon,
      worker: 'worker-1',
    })
  })

  it('keeps the error that an earlier attempt reported when a later one says nothing', () => {
    const after = createFailure(aLeasedItem({ failure: aFailure() }), {}, 'attempts', noon)
    expect(after).toMatchObject({
      errorClass: aFailure().errorClass,
      message: aFailure().message,
      reason: 'attempts',
    })
  })
})

describe('the dead letter of an item', () => {
  it('a dead letter starts a life of its own and names its origin', () => {
    const item = aLeasedItem({ attempts: 3, kind: 'order', key: new Uint8Array([1]), partition: 5 })
    const place = {
      queue: aQueue({ name: 'graveyard', expireUs: hour }),
      partition: 1,
      id: 'new',
      chance: 0.5,
    }
    expect(createDeadLetter(item, aFailure(), place, noon)).toMatchObject({
      id: 'new',
      rootId: 'new',
      sourceId: item.id,
      queue: 'graveyard',
      partition: 1,
      state: 'waiting',
      attempts: 0,
      kind: 'order',
      createdAt: noon,
      diedAt: noon,
      expireDeadline: noon + hour,
      failure: aFailure(),
      origin: { kind: 'queue', name: 'orders', partition: 5, id: item.id, createdAt: item.createdAt },
    })
  })

  it('goes to the same partition however often the move is repeated', () => {
    expect([0, 1, 2, 3, 4].map((partition) => deadPartition(partition, { partitions: 3 }))).toEqual([
      0, 1, 2, 0, 1,
    ])
  })
})

describe('an item that is a redrive of a letter', () => {
  const redriven = aLeasedItem({ letterId: 'letter', redrives: 2, attempts: 3 })
  const bounded = aQueue({ attemptsMax: 2, deadQueue: 'graveyard' })
  const given = { isDead: false, error: { message: 'again' } }

  it('goes back to its letter when it dies, whatever its queue does with the dead', () => {
    for (const queue of [bounded, aQueue({ attemptsMax: 2 }), aQueue({ attemptsMax: 2, onDead: 'keep' })]) {
      expect(retryItem(redriven, given, queue, noon)).toMatchObject({ to: 'return', letterId: 'letter' })
      expect(onDue(redriven, queue, noon + hour)).toMatchObject({ to: 'return', letterId: 'letter' })
    }
  })

  it('dies like any other when its letter is gone', () => {
    const fate = killWithoutLetter(redriven, aFailure(), bounded, 'attempts')
    expect(fate).toMatchObject({ to: 'move', deadQueue: 'graveyard' })
  })

  it('is completed like any other', () => {
    expect(complete(redriven, bounded)).toMatchObject({ to: 'remove', as: 'completed' })
  })
})

describe('a letter whose redrive went elsewhere', () => {
  const letter = anItem({
    origin: anOrigin(),
    failure: aFailure(),
    letter: newLetterFacts(noon, aQueue().redrive, () => 0.5),
  })
  const sent = startRedrive(letter, {
    actor: 'ann',
    campaign: null,
    target: { kind: 'webhook', name: 'hooks', partition: null, id: '1' },
    edit: null,
    at: noon,
    deadline: noon + hour,
  })

  it('comes back as unknown when nobody said anything in time', () => {
    expect(dueAt(sent, aQueue())).toBe(noon + hour)
    expect(onDue(sent, aQueue({ attemptsMax: 1 }), noon + hour)).toMatchObject({
      to: 'come-back',
      failure: { reason: 'outcome_unknown', errorClass: '', stack: '', worker: '' },
    })
  })
})
