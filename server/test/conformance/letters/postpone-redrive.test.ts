/** Due letters that cannot be sent are postponed without changing the order of other letters. */

import { expect, it } from 'vitest'
import { aFailure, hour, minute, newItems, noon } from '../../make.ts'
import { aLetter, automatic, createLetterActions } from '../support/letter-actions.ts'
import { listLetters } from '../support/list-letters.ts'
import { describeStores } from '../support/test-stores.ts'

const due = noon + hour
const audit = { at: noon, actor: 'policy', action: 'letter.exhaust', reason: '', requestId: '', details: {} }

describeStores('an automatic redrive that cannot start', (given) => {
  const actions = createLetterActions(given)
  const postpone = async (letterIds: readonly string[], now = due, until = now + minute) =>
    given.run({ op: 'postpone-redrives', letterIds, until, now, audit })
  const dueBy = async (queue: string, instant: number) => {
    const filter = { queues: [queue], dueBy: instant }
    const order = { order: 'deadLetteredAt', isDescending: false } as const
    const page = { countMax: 100, examinedMax: 1_000, bytes: 'none' } as const
    const { letters } = await listLetters(given.storage, { filter, ...order, ...page })
    return letters.map(({ rootId }) => rootId)
  }

  it('a postponed letter is due later and does not change otherwise', async () => {
    const letters = await given.queue({ redrive: automatic })
    const failure = aFailure({ stack: 'at a\nat b' })
    const history = [aFailure({ message: 'before' })]
    const [stuck = '', other = ''] = await actions.capture(letters, [
      aLetter({ failure, history }),
      aLetter(),
    ])
    const before = await actions.readLetter(stuck)
    expect(await postpone([stuck])).toEqual({ postponed: 1, exhausted: 0 })
    const after = { ...before, letter: { ...before.letter, nextRedriveAt: due + minute } }
    expect(await actions.readLetter(stuck)).toEqual(after)
    expect(await dueBy(letters, due + minute - 1)).toEqual([other])
    expect((await dueBy(letters, due + minute)).toSorted()).toEqual([stuck, other].toSorted())
    expect(await given.storage.listAudit({ target: stuck, countMax: 9 })).toEqual([])
  })

  it('a letter is postponed once by two servers', async () => {
    const letters = await given.queue({ redrive: automatic })
    const ids = await actions.capture(letters, Array(20).fill(aLetter()))
    const both = await Promise.all([postpone(ids), postpone(ids.toReversed()), postpone([...ids, ...ids])])
    expect(both.reduce((sum, { postponed }) => sum + postponed, 0)).toBe(20)
    expect(await dueBy(letters, due)).toEqual([])
  })

  it('a letter that is named twice is postponed once', async () => {
    const letters = await given.queue({ redrive: automatic })
    const ids = await actions.capture(letters, [aLetter(), aLetter()])
    expect(await postpone([...ids, ...ids], due, due)).toEqual({ postponed: 2, exhausted: 0 })
  })

  it('a letter that is leased, in progress, ended or not due is not postponed', async () => {
    const { work, letters } = await actions.createQueues({}, { redrive: automatic })
    const [sent = '', discarded = '', early = '', held = ''] = await actions.produceDead(work, newItems(4))
    await actions.redriveOne(sent)
    await actions.discard([discarded])
    const lease = { op: 'lease', queue: letters, partition: 0, holders: ['w', 'w'], now: noon } as const
    const leased = await given.run(lease)
    expect(leased.map(({ rootId }) => rootId).toSorted()).toEqual([early, held].toSorted())
    const ids = [sent, discarded, early, held]
    const before = await given.storage.getLetters(ids)
    expect(await postpone([...ids, '0'.repeat(27), 'no id'])).toEqual({ postponed: 0, exhausted: 0 })
    for (const item of leased) await actions.retryLater(item)
    expect(await postpone(ids, due - 1)).toEqual({ postponed: 0, exhausted: 0 })
    const nextOf = (items: typeof before) => items.map(({ letter }) => letter?.nextRedriveAt)
    expect(nextOf(await given.storage.getLetters(ids))).toEqual(nextOf(before))
    await given.run({
      op: 'update-queue',
      name: letters,
      changes: { redrive: { ...automatic, mode: 'manual' } },
      now: due,
    })
    expect(await postpone(ids)).toEqual({ postponed: 0, exhausted: 0 })
  })

  it('a letter without redrives left becomes DEAD once', async () => {
    const letters = await given.queue({ redrive: automatic })
    const ids = await actions.capture(letters, Array(5).fill(aLetter({ retryCount: 3 })))
    const all = await Promise.all([postpone(ids), postpone(ids.toReversed()), postpone([...ids, ...ids])])
    expect(all.reduce((sum, { exhausted }) => sum + exhausted, 0)).toBe(5)
    expect(all.reduce((sum, { postponed }) => sum + postponed, 0)).toBe(0)
    const dead = { state: 'dead', endedAt: due, updatedAt: due, failure: aFailure() }
    for (const id of ids) {
      expect(await actions.readLetter(id)).toMatchObject({ ...dead, letter: { nextRedriveAt: null } })
      const rows = await given.storage.listAudit({ target: id, countMax: 9 })
      expect(rows).toMatchObject([{ actor: 'policy', action: 'letter.exhaust', details: { retryCount: 3 } }])
    }
  })
})
