import { describe, expect, it } from 'vitest'
import { aLeasedItem, anItem, anOrigin, aQueue, hour, noon } from '../../../test/make.ts'
import { createLetterFacts, startRedrive } from '../dead-letters/letter.ts'
import { decideSettle } from './decide-settle.ts'

describe('decideSettle', () => {
  const facts = createLetterFacts(noon, aQueue().redrive, () => 0.5)
  const letter = anItem({ id: 'letter', origin: anOrigin(), letter: facts })
  const redriving = startRedrive(letter, {
    actor: 'ann',
    campaign: null,
    target: { kind: 'queue', name: 'orders', partition: 0, id: '1' },
    edit: null,
    at: noon,
    deadline: noon + hour,
  })
  const items = [
    aLeasedItem({ id: 'first' }),
    aLeasedItem({ id: 'second' }),
    anItem({ id: 'waiting' }),
    anItem({ id: 'scheduled', availableAt: noon + hour }),
    redriving,
  ]
  const decide = (...ids: string[]) => decideSettle(ids, (id) => items.find((item) => item.id === id))

  it('a settle accepts leased items in the order of the ids', () => {
    expect(decide('second', 'first')).toEqual({ items: [items[1], items[0]], refused: [] })
  })

  it('a settle refuses an available item as not leased', () => {
    expect(decide('first', 'waiting').refused).toEqual([{ id: 'waiting', refusal: 'not-leased' }])
  })

  it('a settle refuses unknown ids, scheduled items and letters whose redrive is in progress as missing', () => {
    expect(decide('unknown', 'scheduled', 'letter').refused).toEqual([
      { id: 'unknown', refusal: 'missing' },
      { id: 'scheduled', refusal: 'missing' },
      { id: 'letter', refusal: 'missing' },
    ])
  })

  it('a settle refuses a repeated id as missing the second time', () => {
    expect(decide('first', 'first', 'waiting', 'waiting').refused).toEqual([
      { id: 'first', refusal: 'missing' },
      { id: 'waiting', refusal: 'not-leased' },
      { id: 'waiting', refusal: 'missing' },
    ])
  })
})
