/** A dead queue begins or ceases to send its letters back by itself: those that are in it are told, step by step. */
import { expect, it } from 'vitest'
import { hour, minute, newItems, noon } from '../make.ts'
import { letterActs } from './letter-acts.ts'
import { describeStores } from './stores.ts'

const inAnHour = { kind: 'fixed', delayUs: hour, jitter: 0 } as const
const automatic = { mode: 'auto', redrivesMax: 3, backoff: inAnHour } as const
const manual = { ...automatic, mode: 'manual' } as const

describeStores('a changed redrive policy', (given) => {
  const acts = letterActs(given)
  const change = async (name: string, redrive: typeof automatic | typeof manual, now = noon) =>
    given.run({ op: 'update-queue', name, changes: { redrive }, now })
  const replan = async (queue: string, countMax = 100, now = noon) =>
    given.run({ op: 'replan-redrives', queue, countMax, now })
  const planned = async (ids: readonly string[]) =>
    (await given.storage.getLetters(ids)).map(({ letter }) => letter?.nextRedriveAt ?? null)

  it('reaches the letters in steps, each once, and any server goes on with it', async () => {
    const { work, letters } = await acts.queues({}, { redrive: manual })
    const ids = await acts.bury(work, newItems(5))
    expect(await replan(letters)).toEqual({ changed: 0, isMore: false })
    await change(letters, automatic)
    expect(await planned(ids)).toEqual([null, null, null, null, null])
    expect(await replan(letters, 2)).toEqual({ changed: 2, isMore: true })
    expect((await planned(ids)).filter((at) => at === noon + hour)).toHaveLength(2)
    // What comes meanwhile knows of it from the start.
    const [late = ''] = await acts.bury(work, newItems(1), undefined, noon + minute)
    expect(await planned([late])).toEqual([noon + minute + hour])
    expect(await replan(letters, 2, noon + minute)).toEqual({ changed: 2, isMore: true })
    expect(await replan(letters, 9, noon + 2 * minute)).toMatchObject({ changed: 1, isMore: false })
    expect((await planned(ids)).toSorted()).toEqual(
      [0, 0, minute, minute, 2 * minute].map((us) => noon + us + hour),
    )
    expect(await replan(letters)).toEqual({ changed: 0, isMore: false })
    expect(await given.storage.getQueue(letters)).not.toHaveProperty('replannedUntil')
  })

  it('lets letters go no more by themselves, at once', async () => {
    const { work, letters } = await acts.queues({}, { redrive: automatic })
    const ids = await acts.bury(work, newItems(3))
    await change(letters, manual)
    const due = { isDueOnly: true, now: noon + 2 * hour }
    expect(await acts.redrive(ids, due)).toMatchObject(ids.map(() => ({ why: 'not-due' })))
    expect(await replan(letters)).toEqual({ changed: 3, isMore: false })
    expect(await planned(ids)).toEqual([null, null, null])
    const { letters: found } = await given.storage.listLetters({
      filter: { queues: [letters], dueBy: noon + 99 * hour },
      order: 'diedAt',
      isDescending: false,
      countMax: 9,
      lookMax: 100,
      bytes: 'none',
    })
    expect(found).toEqual([])
  })

  it('begins anew when it is changed back half-way', async () => {
    const { work, letters } = await acts.queues({}, { redrive: manual })
    const ids = await acts.bury(work, newItems(4))
    await change(letters, automatic)
    await replan(letters, 2)
    await change(letters, manual)
    expect(await replan(letters)).toEqual({ changed: 2, isMore: false })
    expect(await planned(ids)).toEqual([null, null, null, null])
  })

  it('sends nothing by itself whose outcome is unknown, and leaves alone what is under way or ended', async () => {
    const { work, letters } = await acts.queues({}, { redrive: manual })
    const [unknown = '', sent = '', discarded = '', held = '', open = ''] = await acts.bury(work, newItems(5))
    const { queue, partition, id } = await acts.send(unknown)
    await given.run({ op: 'delete', queue, partition, ids: [id] })
    await acts.send(sent)
    await acts.discard([discarded])
    await change(letters, automatic)
    const [lease] = await given.run({ op: 'lease', queue: letters, partition: 0, holders: ['w'], now: noon })
    await replan(letters)
    const now = noon + hour
    const isHeld = (letterId: string) => lease?.rootId === letterId
    expect(await planned([unknown, sent, discarded, held, open])).toEqual([null, null, null, now, now])
    expect([unknown, held, open].some(isHeld)).toBe(true)
    if (lease !== undefined) await acts.giveBack(lease)
  })
})
