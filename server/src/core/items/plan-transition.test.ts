import { describe, expect, it } from 'vitest'
import { aFailure, aLeasedItem, anItem, anOrigin, aQueue, hour, noon } from '../../../test/make.ts'
import { createLetterFacts, startRedrive } from '../dead-letters/letter.ts'
import { type PlanContext, planTransition, redriveEndedBy, withLetter } from './plan-transition.ts'
import { complete, onDue, retryItem } from './transitions.ts'

const deadRequest = { isDead: true, error: null }

function aContext(changes: Partial<PlanContext> = {}): PlanContext {
  return {
    queue: aQueue(),
    letter: undefined,
    now: noon,
    getDeadQueue: (name) => aQueue({ name, partitions: 2 }),
    allocateId: (queue, partition) => `new in ${queue}/${partition}`,
    random: () => 0.5,
    ...changes,
  }
}

describe('the plan of a transition', () => {
  const item = aLeasedItem({ partition: 3 })
  const from = { fromId: item.id, fromQueue: item.queue, fromPartition: 3 }

  it('a retried item is rewritten with a new id at the tail of its partition', () => {
    const transition = retryItem(item, { availableAt: null, isDead: false, error: null }, aQueue(), noon)
    const id = `new in ${item.queue}/3`
    expect(planTransition(item, transition, aContext())).toMatchObject({
      write: 'rewrite',
      after: { id, state: 'waiting' },
      total: null,
      change: { ...from, to: 'waiting', cause: 'retry', id, queue: item.queue, partition: 3 },
    })
  })

  it('an item that is retried later keeps its id and is reported as scheduled', () => {
    const request = { availableAt: noon + hour, isDead: false, error: null }
    const transition = retryItem(item, request, aQueue(), noon)
    expect(planTransition(item, transition, aContext())).toMatchObject({
      write: 'rewrite',
      change: { to: 'scheduled', id: item.id },
    })
  })

  it('a completed item is removed and counted as completed', () => {
    const plan = planTransition(item, complete(item, aQueue()), aContext())
    expect(plan).toEqual({
      write: 'remove',
      total: 'completed',
      change: {
        ...from,
        to: 'removed',
        cause: 'complete',
        id: null,
        queue: item.queue,
        partition: 3,
        failure: null,
      },
    })
  })

  it('a dead item moves to the partition of the dead queue that its own partition maps to', () => {
    const queue = aQueue({ deadQueue: 'graveyard' })
    const transition = retryItem(item, deadRequest, queue, noon)
    expect(planTransition(item, transition, aContext({ queue }))).toMatchObject({
      write: 'move',
      letter: { id: 'new in graveyard/1', queue: 'graveyard', partition: 1, sourceId: item.id },
      total: 'deadLettered',
      change: { ...from, to: 'moved', id: 'new in graveyard/1', queue: 'graveyard', partition: 1 },
    })
  })
})

describe('a redrive', () => {
  const redriven = aLeasedItem({ letterId: 'letter', retryCount: 2 })
  const letter = anItem({ id: 'there', queue: 'graveyard', partition: 1 })

  it('a redrive whose item is completed ends as resolved, and the change of the item reports it', () => {
    const transition = complete(redriven, aQueue())
    expect(redriveEndedBy(redriven, transition)).toMatchObject({
      letterId: 'letter',
      number: 2,
      outcome: 'resolved',
    })
    expect(planTransition(redriven, transition, aContext({ letter })).change.outcome).toBe('resolved')
  })

  it('a redrive whose item dies ends as failed, and the item returns to its letter', () => {
    const transition = retryItem(redriven, deadRequest, aQueue(), noon)
    expect(redriveEndedBy(redriven, transition)).toMatchObject({ letterId: 'letter', outcome: 'failed' })
    expect(withLetter(redriven, transition, aQueue(), letter)).toBe(transition)
    expect(planTransition(redriven, transition, aContext({ letter }))).toMatchObject({
      write: 'remove',
      total: 'deadLettered',
      change: { to: 'returned', id: 'there', queue: 'graveyard', partition: 1, outcome: 'failed' },
    })
  })

  it('the item of a redrive whose letter is gone dies like any other item of its queue', () => {
    const transition = retryItem(redriven, deadRequest, aQueue(), noon)
    expect(withLetter(redriven, transition, aQueue(), undefined)).toMatchObject({
      to: 'remove',
      as: 'dropped',
    })
    const keeping = aQueue({ onDead: 'keep' })
    expect(withLetter(redriven, transition, keeping, undefined)).toMatchObject({ to: 'dead' })
  })

  it('a redrive that reports no outcome before its deadline ends as unknown, and the plan writes no row', () => {
    const facts = createLetterFacts(noon, aQueue().redrive, () => 0.5)
    const sent = startRedrive(anItem({ origin: anOrigin(), failure: aFailure(), letter: facts }), {
      actor: 'ann',
      campaign: null,
      target: { kind: 'webhook', name: 'hooks', partition: null, id: '1' },
      edit: null,
      at: noon,
      deadline: noon + hour,
    })
    const transition = onDue(sent, aQueue(), noon + hour)
    expect(redriveEndedBy(sent, transition)).toMatchObject({ letterId: sent.rootId, outcome: 'unknown' })
    expect(planTransition(sent, transition, aContext({ letter: anItem() }))).toMatchObject({
      write: 'none',
      total: null,
      change: { to: 'waiting', id: sent.id, outcome: 'unknown' },
    })
  })

  it('a redrive whose item is retried does not end', () => {
    const transition = retryItem(redriven, { isDead: false, error: null }, aQueue(), noon)
    expect(redriveEndedBy(redriven, transition)).toBeUndefined()
  })
})
