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
} from '../../../test/make.ts'
import { createDeadLetter, mapPartition } from '../dead-letters/dead-letter.ts'
import { createLetterFacts, startRedrive } from '../dead-letters/letter.ts'
import {
  complete,
  computeDueAt,
  createFailure,
  expireDeadlineWhenPromoted,
  killWithoutLetter,
  onDue,
  retryItem,
} from './transitions.ts'

const retryRequest = { availableAt: null, isDead: false, error: null }
const letter = { origin: anOrigin(), sourceId: 'main/payments/3/42/billing', deadLetteredAt: noon }

describe('a completed item', () => {
  it('a completed item is removed, unless its queue keeps completed items', () => {
    expect(complete(aLeasedItem(), aQueue())).toMatchObject({ to: 'remove', as: 'completed' })
    expect(complete(aLeasedItem(), aQueue({ doneRetentionUs: hour }))).toMatchObject({ to: 'done' })
  })

  it('a completed dead letter stays as done, as the proof that it was processed', () => {
    expect(complete(aLeasedItem(letter), aQueue())).toMatchObject({ to: 'done' })
  })
})

describe('an item that a worker gives back', () => {
  it('a retried item waits again, immediately or at the time that the worker asks for', () => {
    expect(retryItem(aLeasedItem(), retryRequest, aQueue(), noon)).toMatchObject({
      to: 'waiting',
      availableAt: null,
      cause: 'retry',
    })
    const later = retryItem(aLeasedItem(), { ...retryRequest, availableAt: noon + hour }, aQueue(), noon)
    expect(later).toMatchObject({ to: 'waiting', availableAt: noon + hour })
  })

  const retry = { kind: 'fixed', delayUs: second, jitter: 0 } as const

  it.each([
    ['immediately', null, null],
    ['at the time of the worker', noon + hour, noon + hour],
    ['by the retry policy', undefined, noon + second],
  ])('an item that is retried %s dies only if its attempts exceed the limit', (_, asked, availableAt) => {
    const rules = aQueue({ attemptsMax: 3, deadQueue: 'graveyard', retry })
    const transitions = [1, 2, 3, 4, 5].map((attempts) =>
      retryItem(aLeasedItem({ attempts }), { ...retryRequest, availableAt: asked }, rules, noon),
    )
    const waits = { to: 'waiting', availableAt, cause: 'retry' }
    const dies = { to: 'move', deadQueue: 'graveyard', cause: 'attempts' }
    expect(transitions).toMatchObject([waits, waits, waits, dies, dies])
  })

  it('the attempt limit of an item has priority over the limit of its queue', () => {
    const retryWith = (attemptsMax: number, queueAttemptsMax: number) =>
      retryItem(
        aLeasedItem({ attempts: 3, attemptsMax }),
        retryRequest,
        aQueue({ attemptsMax: queueAttemptsMax }),
        noon,
      )
    expect(retryWith(2, 9)).toMatchObject({ cause: 'attempts' })
    expect(retryWith(3, 1)).toMatchObject({ cause: 'retry' })
  })

  it('a retried dead letter whose attempts exceed the limit becomes dead in its queue', () => {
    const rules = aQueue({ attemptsMax: 2, deadQueue: 'graveyard' })
    const transitions = [2, 3].map(
      (attempts) => retryItem(aLeasedItem({ ...letter, attempts }), retryRequest, rules, noon).to,
    )
    expect(transitions).toEqual(['waiting', 'dead'])
  })

  it('an item without an attempt limit is always retried', () => {
    expect(retryItem(aLeasedItem({ attempts: 65_536 }), retryRequest, aQueue(), noon).to).toBe('waiting')
  })

  it('an item that a worker declares dead dies immediately', () => {
    const transition = retryItem(
      aLeasedItem(),
      { ...retryRequest, isDead: true },
      aQueue({ deadQueue: 'graveyard' }),
      noon,
    )
    expect(transition).toMatchObject({ to: 'move', deadQueue: 'graveyard', cause: 'declared-dead' })
  })
})

describe('an item that dies', () => {
  const isDead = { ...retryRequest, isDead: true }

  it('an item that dies without a dead queue is deleted and counted as dropped', () => {
    expect(retryItem(aLeasedItem(), isDead, aQueue(), noon)).toMatchObject({ to: 'remove', as: 'dropped' })
  })

  it('an item that dies stays in a queue with on_dead keep', () => {
    expect(retryItem(aLeasedItem(), isDead, aQueue({ onDead: 'keep' }), noon)).toMatchObject({ to: 'dead' })
  })

  it('a dead letter that dies is neither deleted nor moved', () => {
    for (const rules of [aQueue(), aQueue({ deadQueue: 'graveyard' }), aQueue({ onDead: 'keep' })]) {
      expect(retryItem(aLeasedItem(letter), isDead, rules, noon)).toMatchObject({ to: 'dead' })
    }
  })
})

describe('an item that is due', () => {
  it('an item whose lease ends waits again, or dies if it is out of attempts or expired', () => {
    const rules = aQueue({ attemptsMax: 2, deadQueue: 'graveyard' })
    expect(onDue(aLeasedItem(), rules, noon)).toMatchObject({ to: 'waiting', cause: 'lease-end' })
    for (const attempts of [2, 3]) {
      const transition = onDue(aLeasedItem({ attempts }), rules, noon)
      expect(transition).toMatchObject({ to: 'move', cause: 'attempts' })
    }
    expect(onDue(aLeasedItem(), rules, noon + day)).toMatchObject({ to: 'move', cause: 'expire' })
  })

  it('an item whose lease ends waits as long as the retry policy of its queue demands', () => {
    const retry = { kind: 'exponential', delayUsMin: second, delayUsMax: minute, jitter: 0.2 } as const
    const availableAt = (attempts: number, chance: number) => {
      const transition = onDue(aLeasedItem({ attempts }), aQueue({ retry }), noon, chance)
      return transition.to === 'waiting' ? transition.availableAt : undefined
    }
    expect(availableAt(1, 0.5)).toBe(noon + second)
    expect(availableAt(3, 0.5)).toBe(noon + 4 * second)
    expect(availableAt(1, 0)).toBe(noon + 0.8 * second)
    expect(onDue(aLeasedItem(), aQueue(), noon)).toMatchObject({ to: 'waiting', availableAt: null })
  })

  it('an item that waited too long expires, but a dead letter never does', () => {
    expect(onDue(anItem(), aQueue(), noon + day)).toMatchObject({
      to: 'remove',
      as: 'dropped',
      cause: 'expire',
    })
    expect(computeDueAt(anItem(letter), aQueue())).toBeNull()
    expect(onDue(aLeasedItem(letter), aQueue(), noon + 999 * day)).toMatchObject({ to: 'waiting' })
  })

  it('a scheduled item becomes available and then waits its full time before it expires', () => {
    const item = anItem({ availableAt: noon + 2 * day })
    expect(onDue(item, aQueue(), noon + 2 * day)).toMatchObject({ to: 'waiting', availableAt: null })
    expect(expireDeadlineWhenPromoted(item, aQueue(), noon + 2 * day)).toBe(noon + 3 * day)
    expect(expireDeadlineWhenPromoted(item, aQueue(), noon + hour)).toBe(noon + day)
  })

  it('a done item is removed when its retention ends, but a resolved letter is not', () => {
    const { lease, ...rest } = aLeasedItem()
    const done = { ...rest, state: 'done', endedAt: noon } as const
    expect(computeDueAt(done, aQueue({ doneRetentionUs: hour }))).toBe(noon + hour)
    expect(computeDueAt({ ...done, ...letter }, aQueue({ doneRetentionUs: hour }))).toBeNull()
    expect(onDue(done, aQueue(), noon + hour)).toMatchObject({ to: 'remove', as: 'forgotten' })
  })

  it('an item is due at the deadline of its lease, at its scheduled time, or when it expires', () => {
    expect(computeDueAt(aLeasedItem(), aQueue())).toBe(noon + minute)
    expect(computeDueAt(anItem({ availableAt: noon + second }), aQueue())).toBe(noon + second)
    expect(computeDueAt(anItem(), aQueue())).toBe(noon + day)
  })
})

describe('the failure of an item', () => {
  it('a failure keeps the time of the first failure and has the newest error', () => {
    const before = aFailure({ firstFailedAt: noon - hour, lastFailedAt: noon - minute })
    const error = { errorClass: 'Timeout', message: 'no answer in 30 s' }
    const after = createFailure(aLeasedItem({ attempts: 4, failure: before }), error, 'retried', noon)
    expect(after).toEqual({
      errorCode: 'retried',
      errorClass: 'Timeout',
      message: 'no answer in 30 s',
      stack: '',
      attempts: 4,
      firstFailedAt: noon - hour,
      lastFailedAt: noon,
      worker: 'worker-1',
    })
  })

  it('a failure without an error of its own keeps the error of the earlier attempt', () => {
    const after = createFailure(aLeasedItem({ failure: aFailure() }), {}, 'attempts', noon)
    expect(after).toMatchObject({
      errorClass: aFailure().errorClass,
      message: aFailure().message,
      errorCode: 'attempts',
    })
  })
})

describe('the dead letter of an item', () => {
  it('a dead letter has its own id, times and attempts, and names its origin', () => {
    const item = aLeasedItem({ attempts: 3, kind: 'order', key: new Uint8Array([1]), partition: 5 })
    const destination = {
      queue: aQueue({ name: 'graveyard', expireTimeoutUs: hour }),
      partition: 1,
      id: 'new',
      chance: 0.5,
    }
    expect(createDeadLetter(item, aFailure(), destination, noon)).toMatchObject({
      id: 'new',
      rootId: 'new',
      sourceId: item.id,
      queue: 'graveyard',
      partition: 1,
      state: 'waiting',
      attempts: 0,
      kind: 'order',
      createdAt: noon,
      deadLetteredAt: noon,
      expireDeadline: noon + hour,
      failure: aFailure(),
      origin: { kind: 'queue', name: 'orders', partition: 5, id: item.id, createdAt: item.createdAt },
    })
  })

  it('a repeated move goes to the same partition of the dead queue', () => {
    expect([0, 1, 2, 3, 4].map((partition) => mapPartition(partition, { partitions: 3 }))).toEqual([
      0, 1, 2, 0, 1,
    ])
  })
})

describe('an item that is a redrive of a letter', () => {
  const redriven = aLeasedItem({ letterId: 'letter', retryCount: 2, attempts: 3 })
  const bounded = aQueue({ attemptsMax: 2, deadQueue: 'graveyard' })
  const given = { isDead: false, error: { message: 'again' } }

  it('the item of a redrive returns to its letter when it dies, for every setting of its queue', () => {
    for (const queue of [bounded, aQueue({ attemptsMax: 2 }), aQueue({ attemptsMax: 2, onDead: 'keep' })]) {
      expect(retryItem(redriven, given, queue, noon)).toMatchObject({ to: 'return', letterId: 'letter' })
      expect(onDue(redriven, queue, noon + hour)).toMatchObject({ to: 'return', letterId: 'letter' })
    }
  })

  it('the item of a redrive whose letter is gone dies like any other item', () => {
    const transition = killWithoutLetter(redriven, aFailure(), bounded, 'attempts')
    expect(transition).toMatchObject({ to: 'move', deadQueue: 'graveyard' })
  })

  it('the item of a redrive is completed like any other item', () => {
    expect(complete(redriven, bounded)).toMatchObject({ to: 'remove', as: 'completed' })
  })
})

describe('a letter whose redrive a driver sent', () => {
  const letter = anItem({
    origin: anOrigin(),
    failure: aFailure(),
    letter: createLetterFacts(noon, aQueue().redrive, () => 0.5),
  })
  const sent = startRedrive(letter, {
    actor: 'ann',
    campaign: null,
    target: { kind: 'webhook', name: 'hooks', partition: null, id: '1' },
    edit: null,
    at: noon,
    deadline: noon + hour,
  })

  it('a redrive without an outcome before its deadline ends as unknown', () => {
    expect(computeDueAt(sent, aQueue())).toBe(noon + hour)
    expect(onDue(sent, aQueue({ attemptsMax: 1 }), noon + hour)).toMatchObject({
      to: 'end-redrive',
      failure: { errorCode: 'outcome_unknown', errorClass: '', stack: '', worker: '' },
    })
  })
})
