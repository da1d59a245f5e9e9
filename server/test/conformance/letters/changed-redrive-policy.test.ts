/** A changed redrive policy of a dead queue is applied to its letters, step by step. */

import { expect, it } from 'vitest'
import type { QueuePolicy } from '../../../src/core/items/queue.ts'
import { hour, minute, newItems, noon } from '../../make.ts'
import { createLetterActions } from '../support/letter-actions.ts'
import { listLetters } from '../support/list-letters.ts'
import { describeStores } from '../support/test-stores.ts'

const inAnHour = { kind: 'fixed', delayUs: hour, jitter: 0 } as const
const automatic = { mode: 'auto', redrivesMax: 3, backoff: inAnHour } as const
const manual = { ...automatic, mode: 'manual' } as const

describeStores('a changed redrive policy', (given) => {
  const actions = createLetterActions(given)
  const change = async (name: string, redrive: QueuePolicy['redrive'], now = noon) =>
    given.run({ op: 'update-queue', name, changes: { redrive }, now })
  const audit = {
    at: noon,
    actor: 'policy',
    action: 'letter.exhaust',
    reason: '',
    requestId: '',
    details: {},
  }
  const replan = async (queue: string, countMax = 100, now = noon) =>
    given.run({ op: 'replan-redrives', queue, countMax, now, audit })
  const planned = async (ids: readonly string[]) =>
    (await given.storage.getLetters(ids)).map(({ letter }) => letter?.nextRedriveAt ?? null)

  it('a changed policy is applied to letters in steps, once each, by any server', async () => {
    const { work, letters } = await actions.createQueues({}, { redrive: manual })
    const ids = await actions.produceDead(work, newItems(5))
    expect(await replan(letters)).toEqual({ changed: 0, isMore: false })
    await change(letters, automatic)
    expect(await planned(ids)).toEqual([null, null, null, null, null])
    expect(await replan(letters, 2)).toEqual({ changed: 2, isMore: true })
    expect((await planned(ids)).filter((at) => at === noon + hour)).toHaveLength(2)
    // New letters follow the changed policy from the start.
    const [late = ''] = await actions.produceDead(work, newItems(1), undefined, noon + minute)
    expect(await planned([late])).toEqual([noon + minute + hour])
    expect(await replan(letters, 2, noon + minute)).toEqual({ changed: 2, isMore: true })
    expect(await replan(letters, 9, noon + 2 * minute)).toMatchObject({ changed: 1, isMore: false })
    expect((await planned(ids)).toSorted()).toEqual(
      [0, 0, minute, minute, 2 * minute].map((us) => noon + us + hour),
    )
    expect(await replan(letters)).toEqual({ changed: 0, isMore: false })
    expect(await given.storage.getQueue(letters)).not.toHaveProperty('replannedUntil')
  })

  it('switching to manual stops automatic redrives immediately', async () => {
    const { work, letters } = await actions.createQueues({}, { redrive: automatic })
    const ids = await actions.produceDead(work, newItems(3))
    await change(letters, manual)
    const due = { isDueOnly: true, now: noon + 2 * hour }
    expect(await actions.redrive(ids, due)).toMatchObject(ids.map(() => ({ refusal: 'not-due' })))
    expect(await replan(letters)).toEqual({ changed: 3, isMore: false })
    expect(await planned(ids)).toEqual([null, null, null])
    const { letters: found } = await listLetters(given.storage, {
      filter: { queues: [letters], dueBy: noon + 99 * hour },
      order: 'deadLetteredAt',
      isDescending: false,
      countMax: 9,
      examinedMax: 100,
      bytes: 'none',
    })
    expect(found).toEqual([])
  })

  it('a second policy change restarts the replan', async () => {
    const { work, letters } = await actions.createQueues({}, { redrive: manual })
    const ids = await actions.produceDead(work, newItems(4))
    await change(letters, automatic)
    await replan(letters, 2)
    await change(letters, manual)
    expect(await replan(letters)).toEqual({ changed: 2, isMore: false })
    expect(await planned(ids)).toEqual([null, null, null, null])
  })

  it('a replan does not schedule letters with an unknown outcome, in progress or ended', async () => {
    const { work, letters } = await actions.createQueues({}, { redrive: manual })
    const [unknown = '', sent = '', discarded = '', held = '', open = ''] = await actions.produceDead(
      work,
      newItems(5),
    )
    const { queue, partition, id } = await actions.redriveOne(unknown)
    await given.run({ op: 'delete', queue, partition, ids: [id] })
    await actions.redriveOne(sent)
    await actions.discard([discarded])
    await change(letters, automatic)
    const [lease] = await given.run({ op: 'lease', queue: letters, partition: 0, holders: ['w'], now: noon })
    await replan(letters)
    const now = noon + hour
    const isHeld = (letterId: string) => lease?.rootId === letterId
    expect(await planned([unknown, sent, discarded, held, open])).toEqual([null, null, null, now, now])
    expect([unknown, held, open].some(isHeld)).toBe(true)
    if (lease !== undefined) await actions.retryLater(lease)
  })

  /** Letters with the given numbers of redrives. */
  const failed = async (work: string, times: readonly number[]) => {
    const ids = await actions.produceDead(work, newItems(times.length))
    for (const [index, letterId] of ids.entries()) {
      for (let time = 0; time < (times[index] ?? 0); time++) {
        await actions.declareDead(await actions.leaseOne(await actions.redriveOne(letterId)))
      }
    }
    return ids
  }
  const states = async (ids: readonly string[]) =>
    (await given.storage.getLetters(ids)).map(({ state }) => state)

  it('a lower cap makes letters DEAD once, with an audit row', async () => {
    const { work, letters } = await actions.createQueues({}, { redrive: automatic })
    const ids = await failed(work, [0, 1, 2])
    await change(letters, { ...automatic, redrivesMax: 1 })
    const now = noon + minute
    const steps = [
      await replan(letters, 2, now),
      await replan(letters, 2, now),
      await replan(letters, 2, now),
    ]
    expect(steps.reduce((sum, { changed }) => sum + changed, 0)).toBe(2)
    expect(steps.at(-1)).toEqual({ changed: 0, isMore: false })
    expect(await states(ids)).toEqual(['waiting', 'dead', 'dead'])
    expect(await planned(ids)).toEqual([noon + hour, null, null])
    const [open = '', once = '', twice = ''] = ids
    expect(await actions.readLetter(once)).toMatchObject({ endedAt: now, updatedAt: now, retryCount: 1 })
    const counted = await given.storage.countLetters({ filter: { queues: [letters] }, by: ['state'] })
    expect(counted.toSorted((a, b) => a.count - b.count)).toEqual([
      { state: 'waiting', count: 1 },
      { state: 'dead', count: 2 },
    ])
    const trail = async (target: string) =>
      (await given.storage.listAudit({ target, countMax: 9 })).map(
        ({ actor, action, details }) => `${actor} ${action} ${details.retryCount}`,
      )
    expect(await trail(open)).toEqual([])
    expect(await trail(once)).toEqual(['policy letter.exhaust 1'])
    expect(await trail(twice)).toEqual(['policy letter.exhaust 2'])
    // A DEAD letter waits for a person, even after the cap is raised.
    await change(letters, { ...automatic, redrivesMax: 9 })
    await replan(letters)
    expect(await states(ids)).toEqual(['waiting', 'dead', 'dead'])
  })

  it('a replan does not change manual queues, and handles held letters when they are due', async () => {
    const { work, letters } = await actions.createQueues({}, { redrive: manual })
    const [open = '', held = ''] = await failed(work, [1, 1])
    await change(letters, { ...manual, redrivesMax: 1 })
    expect(await replan(letters)).toEqual({ changed: 0, isMore: false })
    expect(await states([open])).toEqual(['waiting'])
    const holders = ['w', 'w']
    const leased = await given.run({ op: 'lease', queue: letters, partition: 0, holders, now: noon })
    for (const item of leased) if (item.rootId === open) await actions.retryLater(item)
    await change(letters, { ...automatic, redrivesMax: 1 })
    await replan(letters)
    expect(await states([open, held])).toEqual(['dead', 'leased'])
    expect(await planned([held])).toEqual([noon + hour])
    for (const item of leased) if (item.rootId === held) await actions.retryLater(item)
    const postpone = { op: 'postpone-redrives', letterIds: [held], until: noon + 9 * hour, audit } as const
    expect(await given.run({ ...postpone, now: noon + hour })).toEqual({ postponed: 0, exhausted: 1 })
    expect(await states([held])).toEqual(['dead'])
  })

  it('a restored letter is not redriven automatically until a person sends it', async () => {
    const { work, letters } = await actions.createQueues({}, { redrive: automatic })
    const ids = await actions.produceDead(work, newItems(2))
    await actions.discard(ids)
    await given.run({ op: 'archive', queue: letters, endedBefore: noon + 1, countMax: 9, now: noon })
    await given.run({ op: 'restore', letterIds: ids, now: noon })
    await change(letters, { ...automatic, redrivesMax: 2 })
    expect(await replan(letters)).toEqual({ changed: 0, isMore: false })
    expect(await planned(ids)).toEqual([null, null])
    await change(letters, manual)
    const [sent = ''] = ids
    await actions.declareDead(
      await actions.leaseOne(await actions.redriveOne(sent, noon + 1)),
      undefined,
      noon + 1,
    )
    await change(letters, automatic)
    await replan(letters)
    expect(await planned(ids)).toEqual([noon + hour, null])
  })
})
