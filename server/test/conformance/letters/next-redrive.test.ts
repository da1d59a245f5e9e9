/** The time of the next automatic redrive: only letters that can still be redriven have one. */

import { expect, it } from 'vitest'
import type { Item } from '../../../src/core/items/item.ts'
import { day, hour, minute, newItems, noon } from '../../make.ts'
import { automatic, createLetterActions } from '../support/letter-actions.ts'
import { listLetters } from '../support/list-letters.ts'
import { describeStores } from '../support/test-stores.ts'

const planned = noon + hour

describeStores('the next redrive of a letter', (given) => {
  const actions = createLetterActions(given)
  /** A letter of a queue with an auto policy that a consumer has leased from the dead queue. */
  const aHeldLetter = async () => {
    const { work, letters } = await actions.createQueues(
      {},
      { redrive: automatic, attemptsMax: 1, leaseTimeoutUs: minute },
    )
    const [letterId = ''] = await actions.produceDead(work, newItems(1))
    const held = await actions.leaseOne({ queue: letters, partition: 0 })
    expect(held).toMatchObject({ rootId: letterId, letter: { nextRedriveAt: planned } })
    return { letters, letterId, held }
  }
  const isEnded = async (letterId: string, state: Item['state']) => {
    expect(await actions.readLetter(letterId)).toMatchObject({ state, letter: { nextRedriveAt: null } })
    expect(await dueLetters()).toEqual([])
  }
  const dueLetters = async () => {
    const order = { order: 'deadLetteredAt', isDescending: false } as const
    const page = { countMax: 9, examinedMax: 100, bytes: 'none' } as const
    const { letters } = await listLetters(given.storage, {
      filter: { dueBy: noon + 9 * day },
      ...order,
      ...page,
    })
    return letters.map(({ rootId }) => rootId)
  }

  it('a letter that a consumer completed has no next redrive', async () => {
    const { letterId, held } = await aHeldLetter()
    await actions.complete(held)
    await isEnded(letterId, 'done')
  })

  it('a letter that a consumer declared dead has no next redrive', async () => {
    const { letterId, held } = await aHeldLetter()
    await actions.declareDead(held)
    await isEnded(letterId, 'dead')
  })

  it('a letter without attempts left in the dead queue has no next redrive', async () => {
    const { letterId } = await aHeldLetter()
    await given.run({ op: 'advance', now: noon + minute, countMax: 9 })
    await isEnded(letterId, 'dead')
  })

  it('a letter that a consumer retried keeps its next redrive', async () => {
    const { letterId, held } = await aHeldLetter()
    await actions.retryLater(held)
    expect(await actions.readLetter(letterId)).toMatchObject({
      state: 'waiting',
      letter: { nextRedriveAt: planned },
    })
    expect(await dueLetters()).toEqual([letterId])
  })

  it('a discarded letter has no next redrive, also archived and restored', async () => {
    const { letters, letterId, held } = await aHeldLetter()
    await actions.retryLater(held)
    await actions.discard([letterId])
    await isEnded(letterId, 'discarded')
    const archive = { endedBefore: noon + day, countMax: 9, now: noon + day } as const
    await given.run({ op: 'archive', queue: letters, ...archive })
    const [archived] = await given.storage.getArchivedLetters([letterId])
    expect(archived?.item.letter).toMatchObject({ nextRedriveAt: null })
    await given.run({ op: 'restore', letterIds: [letterId], now: noon + day })
    await isEnded(letterId, 'waiting')
  })

  it('a restored letter that was completed or DEAD has no next redrive', async () => {
    for (const end of [actions.complete, actions.declareDead]) {
      const { letters, letterId, held } = await aHeldLetter()
      await end(held)
      const archive = { endedBefore: noon + day, countMax: 9, now: noon + day } as const
      await given.run({ op: 'archive', queue: letters, ...archive })
      const [archived] = await given.storage.getArchivedLetters([letterId])
      expect(archived?.item.letter).toMatchObject({ nextRedriveAt: null })
      await given.run({ op: 'restore', letterIds: [letterId], now: noon + day })
      await isEnded(letterId, end === actions.complete ? 'waiting' : 'dead')
    }
  })
})
