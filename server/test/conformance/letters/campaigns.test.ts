/** Stored campaigns: the versioned document, the frozen set and the state of each letter in it. */
import { describe, expect, it } from 'vitest'
import { createKsuids } from '../../../src/core/ids/ksuid.ts'
import {
  type CampaignCounts,
  type CampaignLetterState,
  campaignLetterStates,
  type FreezeLetters,
} from '../../../src/storage/contract/campaigns.ts'
import type { LetterCursor } from '../../../src/storage/contract/letters.ts'
import { aFailure, bytes, hour, minute, newItems, noon } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { describeStores } from '../support/test-stores.ts'

const unknownId = '0'.repeat(27)

describeStores('a campaign', (given) => {
  const actions = createLetterActions(given)
  let lastId: string | undefined
  const newId = (): string => {
    const [id = ''] = createKsuids(lastId, noon, 1, Math.random)
    lastId = id
    return id
  }
  const put = async (id: string, version: number, state = 'running', document: object = { name: 'n' }) =>
    given.run({ op: 'put-campaign', id, version, state, document: { ...document } })
  /** Creates a campaign with an empty set. */
  const create = async (state = 'running'): Promise<string> => {
    const id = newId()
    expect(await put(id, 0, state)).toEqual({ isPut: true })
    return id
  }
  const freeze = async (campaignId: string, changes: Partial<FreezeLetters> = {}) => {
    const command = {
      op: 'freeze-letters',
      campaignId,
      filter: {},
      countMax: 1_000,
      examinedMax: 10_000,
    } as const
    return given.run({ ...command, ...changes })
  }
  const freezeIds = async (campaignId: string, letterIds: readonly string[]) =>
    given.run({ op: 'freeze-ids', campaignId, letterIds })
  const set = async (campaignId: string, query: object = {}) =>
    given.storage.listCampaignLetters({ campaignId, countMax: 1_000, ...query })
  const countsOf = async (campaignId: string) => (await given.storage.getCampaign(campaignId))?.counts
  const counts = (some: Partial<CampaignCounts>): CampaignCounts => ({
    ...(Object.fromEntries(campaignLetterStates.map((state) => [state, 0])) as Record<
      CampaignLetterState,
      number
    >),
    ...some,
  })
  const states = async (campaignId: string) => (await set(campaignId)).map(({ state }) => state)
  /** Redrives the letters at these indexes of the set. */
  const sendOf = async (campaignId: string, numbers: readonly number[], changes: object = {}) => {
    const all = await set(campaignId)
    const letters = numbers.map((number) => {
      const { letterId = '', position = -1 } = all[number] ?? {}
      return { letterId, queue: null, campaign: { id: campaignId, position } }
    })
    return actions.redrive([], { letters, ...changes })
  }

  describe('as a document', () => {
    it('a stored campaign is read back with the next version', async () => {
      const document = { name: 'ü "\\', nested: { list: [1, null, true, 'x'], empty: {} }, at: noon }
      const id = newId()
      expect(await given.storage.getCampaign(id)).toBeNull()
      expect(await put(id, 0, 'freezing', document)).toEqual({ isPut: true })
      const stored = { id, version: 1, state: 'freezing', namespace: '', document, counts: counts({}) }
      expect(await given.storage.getCampaign(id)).toEqual(stored)
      expect(await put(id, 1, 'done', { other: 1 })).toEqual({ isPut: true })
      expect(await given.storage.getCampaign(id)).toEqual({
        ...stored,
        version: 2,
        state: 'done',
        document: { other: 1 },
      })
    })

    it('an update with an outdated version is refused', async () => {
      const id = await create()
      expect(await put(id, 1, 'paused', { by: 'first' })).toEqual({ isPut: true })
      for (const version of [0, 1, 3, 17]) {
        expect(await put(id, version, 'done', { by: 'late' })).toEqual({ isPut: false })
      }
      expect(await put(newId(), 1, 'done')).toEqual({ isPut: false })
      expect(await given.storage.getCampaign(id)).toMatchObject({
        version: 2,
        state: 'paused',
        document: { by: 'first' },
      })
    })

    it('one of many concurrent updates wins', async () => {
      const id = await create()
      const results = await Promise.all(
        Array.from({ length: 10 }, async (_, by) => put(id, 1, 'running', { by })),
      )
      expect(results.filter(({ isPut }) => isPut)).toHaveLength(1)
      const winner = results.findIndex(({ isPut }) => isPut)
      expect(await given.storage.getCampaign(id)).toMatchObject({ version: 2, document: { by: winner } })
      const made = newId()
      const news = await Promise.all(
        Array.from({ length: 5 }, async (_, by) => put(made, 0, 'running', { by })),
      )
      expect(news.filter(({ isPut }) => isPut)).toHaveLength(1)
    })

    it('campaigns are listed newest first, by state and page by page', async () => {
      const ids: string[] = []
      for (const state of ['listed-a', 'listed-b', 'listed-a', 'listed-b', 'listed-a'])
        ids.unshift(await create(state))
      const list = async (query: object) =>
        (await given.storage.listCampaigns({ countMax: 100, ...query })).map(({ id }) => id)
      expect((await list({})).slice(0, 5)).toEqual(ids)
      expect(await list({ states: ['listed-a', 'listed-b'] })).toEqual(ids)
      expect(await list({ states: ['listed-b'] })).toEqual([ids[1], ids[3]])
      expect(await list({ states: [] })).toEqual([])
      expect(await list({ states: ['listed-a'], beforeId: ids[0], countMax: 1 })).toEqual([ids[2]])
      expect(await list({ beforeId: ids[1], countMax: 2 })).toEqual([ids[2], ids[3]])
    })
  })

  describe('freezes its set', () => {
    it('freezing by filter adds letters in the order of death, all pending', async () => {
      const letters = await given.queue()
      const ids = await actions.capture(
        letters,
        [3, 1, 2, 1].map((minutes) => aLetter({ deadLetteredAt: noon + minutes * minute })),
      )
      await actions.capture(letters, [aLetter({ failure: aFailure({ errorClass: 'Other' }) })])
      const [a = '', b = '', c = '', d = ''] = ids
      const id = await create()
      const filter = { queues: [letters], errorClasses: ['com.example.PaymentRefused'] }
      expect(await freeze(id, { filter })).toMatchObject({ added: 4, next: null })
      const frozen = await set(id)
      expect(frozen.map(({ letterId }) => letterId)).toEqual([...[b, d].toSorted(), c, a])
      expect(frozen.map(({ position }) => position - (frozen[0]?.position ?? 0))).toEqual([0, 1, 2, 3])
      for (const each of frozen) expect(each).toMatchObject({ state: 'pending', refusal: '' })
      expect(await countsOf(id)).toEqual(counts({ pending: 4 }))
    })

    it('freezing continues where the last step ended', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(25))
      await actions.discard(ids.slice(20))
      const id = await create()
      const filter = { queues: [letters], states: ['waiting'] } as const
      let after: LetterCursor | undefined
      let added = 0
      for (let step = 0; ; step++) {
        const frozen = await freeze(id, {
          filter,
          countMax: 3,
          examinedMax: 5,
          ...(after === undefined ? {} : { after }),
        })
        expect(frozen.added).toBeLessThanOrEqual(3)
        expect(frozen.examinedCount).toBeLessThanOrEqual(5)
        added += frozen.added
        if (frozen.next === null) break
        after = frozen.next
        if (step > 100) throw new Error('it does not end')
      }
      expect(added).toBe(20)
      const frozen = await set(id)
      expect(frozen.map(({ letterId }) => letterId)).toEqual(ids.slice(0, 20).toSorted())
      expect(new Set(frozen.map(({ position }) => position)).size).toBe(20)
    })

    it('a repeated freezing step adds nothing', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(10))
      const id = await create()
      const first = await freeze(id, { filter: { queues: [letters] }, countMax: 4 })
      expect(first.added).toBe(4)
      const again = await freeze(id, { filter: { queues: [letters] }, countMax: 1_000 })
      expect(again.added).toBe(6)
      expect(await freeze(id, { filter: { queues: [letters] } })).toMatchObject({ added: 0, next: null })
      expect(await freezeIds(id, ids)).toEqual({ added: 0 })
      expect((await set(id)).map(({ letterId }) => letterId)).toEqual(ids.toSorted())
      expect(await countsOf(id)).toEqual(counts({ pending: 10 }))
    })

    it('freezing by ids keeps the order, each id once, also unknown ids', async () => {
      const { work } = await actions.createQueues()
      const [a = '', b = '', c = ''] = await actions.produceDead(work, newItems(3))
      const id = await create()
      expect(await freezeIds(id, [c, unknownId, a, c])).toEqual({ added: 3 })
      expect(await freezeIds(id, [a, b])).toEqual({ added: 1 })
      const frozen = await set(id)
      expect(frozen.map(({ letterId }) => letterId)).toEqual([c, unknownId, a, b])
      const places = frozen.map(({ position }) => position)
      expect(places).toEqual(places.toSorted((x, y) => x - y))
      expect(await countsOf(id)).toEqual(counts({ pending: 4 }))
    })

    it('two campaigns can have the same letters', async () => {
      const { work, letters } = await actions.createQueues()
      await actions.produceDead(work, newItems(3))
      const [one, two] = [await create(), await create()]
      for (const id of [one, two]) {
        expect(await freeze(id, { filter: { queues: [letters] } })).toMatchObject({ added: 3 })
      }
      expect(await countsOf(one)).toEqual(counts({ pending: 3 }))
    })

    it('a frozen set does not change when letters arrive, change or leave', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(3))
      const id = await create()
      await freeze(id, { filter: { queues: [letters] } })
      const before = await set(id)
      await actions.produceDead(work, newItems(2))
      await actions.discard(ids.slice(0, 1))
      await given.run({ op: 'delete', queue: letters, partition: 0, ids: ids.slice(1, 2) })
      expect(await set(id)).toEqual(before)
    })

    it('letters that arrived or were restored after the campaign was put are not frozen, at any time', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.capture(
        letters,
        ['x', 'live', 'archived'].map((reference) =>
          aLetter({ reference, deadLetteredAt: noon + 99 * hour }),
        ),
        noon + hour,
      )
      const [before = '', live = '', archived = ''] = ids
      const [produced = ''] = await actions.produceDead(work, newItems(1), undefined, noon + hour)
      await actions.discard([archived], noon + hour)
      const archive = { op: 'archive', queue: letters, endedBefore: noon + 2 * hour, countMax: 9 } as const
      expect(await given.run({ ...archive, now: noon + hour })).toMatchObject({ archived: 1 })
      await actions.discard([live], noon + hour)
      const id = await create()
      // All of these have an earlier time than the letters from before.
      await actions.capture(letters, [aLetter({ reference: 'late', deadLetteredAt: noon - hour })], noon)
      await actions.produceDead(work, newItems(1), undefined, noon)
      const restored = await given.run({ op: 'restore', letterIds: [live, archived], now: noon })
      expect(restored).toMatchObject([{ isRestored: true }, { isRestored: true }])
      const later = await create()
      const filter = { queues: [letters] }
      expect(await freeze(id, { filter })).toMatchObject({ added: 2, next: null })
      expect((await set(id)).map(({ letterId }) => letterId).sort()).toEqual([before, produced].toSorted())
      expect(await freeze(later, { filter })).toMatchObject({ added: 6, next: null })
    })

    it('a set of thousands of letters can be frozen', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(1_200))
      const id = await create()
      expect(await freeze(id, { filter: { queues: [letters] }, countMax: 5_000 })).toMatchObject({
        added: 1_200,
      })
      const page = await set(id, {
        countMax: 10,
        afterPosition: (await set(id, { countMax: 2_000 }))[990]?.position,
      })
      expect(page.map(({ letterId }) => letterId)).toEqual(ids.toSorted().slice(991, 1_001))
    })
  })

  describe('sends its letters', () => {
    const three = async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(3))
      const id = await create()
      await freezeIds(id, ids)
      return { work, letters, ids, id }
    }

    it('a campaign records which letters are sent', async () => {
      const { ids, id } = await three()
      const frozen = await set(id)
      await sendOf(id, [1], { now: noon + minute })
      expect(await set(id)).toEqual([frozen[0], { ...frozen[1], state: 'sent' }, frozen[2]])
      expect(await countsOf(id)).toEqual(counts({ pending: 2, sent: 1 }))
      const record = await actions.readNewestRedrive(ids[1] ?? '')
      expect(record).toMatchObject({ campaign: { id, position: frozen[1]?.position }, outcome: null })
    })

    it('letters sent out of order are recorded as sent', async () => {
      const { id } = await three()
      await sendOf(id, [1])
      // The number of letters equals the pending ones up to the last, but they are not the same letters.
      expect(await sendOf(id, [1, 2])).toMatchObject([
        { isStarted: false, refusal: 'redriving' },
        { isStarted: true },
      ])
      expect(await states(id)).toEqual(['pending', 'sent', 'sent'])
      expect(await countsOf(id)).toEqual(counts({ pending: 1, sent: 2 }))
    })

    it('the outcome of a redrive changes the campaign in the same transaction', async () => {
      const { work, id } = await three()
      await sendOf(id, [0, 1, 2])
      const [a, b, c] = [
        await actions.leaseOne({ queue: work, partition: 0 }),
        await actions.leaseOne({ queue: work, partition: 0 }),
        await actions.leaseOne({ queue: work, partition: 0 }),
      ]
      const place = (await set(id)).map(({ letterId }) => letterId)
      const number = (letterId: string | null) => place.indexOf(letterId ?? '')
      const expected: CampaignLetterState[] = ['sent', 'sent', 'sent']
      await actions.complete(a, noon + 1)
      expected[number(a.letterId)] = 'resolved'
      expect(await states(id)).toEqual(expected)
      await actions.declareDead(b, null, noon + 2)
      expected[number(b.letterId)] = 'failed'
      expect(await states(id)).toEqual(expected)
      await given.run({ op: 'delete', queue: work, partition: 0, ids: [c.id] })
      expected[number(c.letterId)] = 'unknown'
      expect(await states(id)).toEqual(expected)
      expect(await countsOf(id)).toEqual(counts({ resolved: 1, failed: 1, unknown: 1 }))
      const ended = await set(id)
      expect(ended[number(a.letterId)]?.at).toBe(noon + 1)
      expect(ended[number(b.letterId)]?.at).toBe(noon + 2)
    })

    it('every way in which a redrive ends updates the campaign', async () => {
      const { work } = await actions.createQueues({
        attemptsMax: 1,
        leaseTimeoutUs: minute,
        expireTimeoutUs: hour,
      })
      const ids = await actions.produceDead(work, newItems(5))
      const id = await create()
      await freezeIds(id, ids)
      await sendOf(id, [0, 1])
      const held = await actions.leaseOne({ queue: work, partition: 0 })
      await given.run({ op: 'advance', now: noon + minute, countMax: 10 })
      expect((await states(id)).filter((state) => state === 'failed')).toHaveLength(1)
      expect(await actions.readLetter(held.letterId ?? '')).toMatchObject({ retryCount: 1 })
      await given.run({ op: 'advance', now: noon + hour, countMax: 10 })
      expect((await states(id)).slice(0, 2)).toEqual(['failed', 'failed'])
      await sendOf(id, [2, 3])
      const { letterId = '' } = (await set(id))[2] ?? {}
      await given.run({
        op: 'end-redrives',
        ends: [{ letterId, outcome: 'resolved', failure: null }],
        now: noon,
      })
      await given.run({ op: 'delete-queue', name: work })
      expect(await states(id)).toEqual(['failed', 'failed', 'resolved', 'unknown', 'pending'])
      expect(await countsOf(id)).toEqual(counts({ failed: 2, resolved: 1, unknown: 1, pending: 1 }))
    })

    it('a letter that is deleted with its queue during its redrive ends as unknown in the campaign', async () => {
      const { work, letters, id } = await three()
      await sendOf(id, [1])
      await actions.eraseLetters({ work, letters })
      expect(await states(id)).toEqual(['pending', 'unknown', 'pending'])
      await sendOf(id, [0, 2])
      expect(await countsOf(id)).toEqual(counts({ unknown: 1, skipped: 2 }))
    })

    it('a clear of the dead queue keeps sent letters in the campaign and skips the others', async () => {
      const { work, letters, ids, id } = await three()
      await sendOf(id, [1])
      const all = { isWaiting: true, isScheduled: true, isLeased: true, countMax: 10 }
      expect(await given.run({ op: 'clear', queue: letters, ...all })).toMatchObject({ discarded: 2 })
      await sendOf(id, [0, 2])
      expect(await states(id)).toEqual(['skipped', 'sent', 'skipped'])
      await actions.complete(await actions.leaseOne({ queue: work, partition: 0 }))
      expect(await countsOf(id)).toEqual(counts({ resolved: 1, skipped: 2 }))
      expect(await actions.readLetter(ids[1] ?? '')).toMatchObject({ state: 'done' })
    })

    it('letters that cannot be sent are skipped with a reason', async () => {
      const { ids, id } = await three()
      const [discarded = '', taken = ''] = ids
      await freezeIds(id, [unknownId])
      await actions.discard([discarded])
      await actions.redriveOne(taken)
      await sendOf(id, [0, 1, 2, 3], { now: noon + 1 })
      expect((await set(id)).map(({ state, refusal, at }) => [state, refusal, at])).toEqual([
        ['skipped', 'discarded', noon + 1],
        ['skipped', 'redriving', noon + 1],
        ['sent', '', null],
        ['skipped', 'missing', noon + 1],
      ])
      expect(await countsOf(id)).toEqual(counts({ skipped: 3, sent: 1 }))
      // A redrive by another caller does not count for the campaign.
      const record = await actions.readNewestRedrive(taken)
      expect(record.campaign).toBeNull()
    })

    it('a repeated step sends no letter twice', async () => {
      const { work } = await actions.createQueues()
      const id = await create()
      await freezeIds(id, await actions.produceDead(work, newItems(5)))
      await sendOf(id, [0, 1, 2])
      await actions.complete(await actions.leaseOne({ queue: work, partition: 0 }))
      await actions.declareDead(await actions.leaseOne({ queue: work, partition: 0 }))
      await given.run({ op: 'skip-letters', campaignId: id, refusal: 'cancelled', countMax: 1 })
      const before = await set(id)
      const counted = counts({ pending: 1, sent: 1, resolved: 1, failed: 1, skipped: 1 })
      expect(await countsOf(id)).toEqual(counted)
      // The failed letter and the skipped letter are open again, but the campaign does not send them again.
      const results = await sendOf(id, [0, 1, 2, 3], { now: noon + 5 })
      expect(results.map(({ isStarted }) => isStarted)).toEqual([false, false, false, false])
      expect(await set(id)).toEqual(before)
      expect(await actions.listItems(work)).toHaveLength(1)
      expect(await countsOf(id)).toEqual(counted)
    })

    it('a rejected write sends no letter', async () => {
      const { id } = await three()
      const [first] = await set(id)
      const letters = [
        { letterId: first?.letterId ?? '', queue: null, campaign: { id, position: first?.position ?? -1 } },
      ]
      const rules = { isDeadAllowed: false, isCapped: true, actor: 'ann', now: noon }
      const failing = given.storage.write([
        { op: 'redrive', letters, ...rules },
        { op: 'produce', queue: 'nowhere', partition: 0, items: newItems(1), now: noon },
      ])
      await expect(failing).rejects.toThrow()
      expect(await states(id)).toEqual(['pending', 'pending', 'pending'])
      expect(await countsOf(id)).toEqual(counts({ pending: 3 }))
    })

    it('a letter in two campaigns reports each outcome to the campaign that sent it', async () => {
      const { work, ids, id } = await three()
      const later = await create()
      await freezeIds(later, ids)
      await sendOf(id, [0])
      await actions.declareDead(await actions.leaseOne({ queue: work, partition: 0 }))
      await sendOf(later, [0])
      await actions.complete(await actions.leaseOne({ queue: work, partition: 0 }))
      expect((await states(id))[0]).toBe('failed')
      expect((await states(later))[0]).toBe('resolved')
    })
  })

  it('a discard campaign discards its letters and skips those that cannot be discarded', async () => {
    const { work } = await actions.createQueues()
    const ids = await actions.produceDead(work, newItems(3))
    const id = await create()
    await freezeIds(id, [...ids, unknownId])
    await actions.redriveOne(ids[1] ?? '')
    const letters = (await set(id)).map(({ letterId, position }) => ({
      letterId,
      campaign: { id, position },
    }))
    const command = { op: 'discard', letters, reason: 'obsolete', now: noon + 1 } as const
    expect((await given.run(command)).map(({ refusal }) => refusal)).toEqual([
      null,
      'redriving',
      null,
      'missing',
    ])
    expect((await set(id)).map(({ state, refusal, at }) => [state, refusal, at])).toEqual([
      ['discarded', '', noon + 1],
      ['skipped', 'redriving', noon + 1],
      ['discarded', '', noon + 1],
      ['skipped', 'missing', noon + 1],
    ])
    expect(await countsOf(id)).toEqual(counts({ discarded: 2, skipped: 2 }))
    const before = await set(id)
    await given.run({ ...command, now: noon + 9 })
    expect(await set(id)).toEqual(before)
  })

  it('a cancelled campaign skips pending letters, lowest places first', async () => {
    const { work } = await actions.createQueues()
    const ids = await actions.produceDead(work, newItems(6))
    const id = await create()
    await freezeIds(id, ids)
    await sendOf(id, [1])
    const skip = { op: 'skip-letters', campaignId: id, refusal: 'cancelled', countMax: 3 } as const
    expect(await given.run(skip)).toEqual({ skipped: 3 })
    expect(await states(id)).toEqual(['skipped', 'sent', 'skipped', 'skipped', 'pending', 'pending'])
    expect((await set(id))[0]).toMatchObject({ refusal: 'cancelled' })
    expect(await given.run(skip)).toEqual({ skipped: 2 })
    expect(await given.run(skip)).toEqual({ skipped: 0 })
    expect(await countsOf(id)).toEqual(counts({ skipped: 5, sent: 1 }))
    await actions.complete(await actions.leaseOne({ queue: work, partition: 0 }))
    expect(await countsOf(id)).toEqual(counts({ skipped: 5, resolved: 1 }))
  })

  it('the set of a campaign is listed by state and from a place', async () => {
    const { work } = await actions.createQueues()
    const ids = await actions.produceDead(work, newItems(6, 'x', { key: bytes('k') }))
    const id = await create()
    await freezeIds(id, ids)
    await sendOf(id, [1, 3, 5])
    const all = await set(id)
    expect(await set(id, { states: ['sent'] })).toEqual([all[1], all[3], all[5]])
    expect(await set(id, { states: ['sent'], afterPosition: all[1]?.position, countMax: 1 })).toEqual([
      all[3],
    ])
    expect(await set(id, { states: ['resolved'] })).toEqual([])
    expect(await set(id, { afterPosition: all[5]?.position })).toEqual([])
    expect(await set(newId())).toEqual([])
  })
})
