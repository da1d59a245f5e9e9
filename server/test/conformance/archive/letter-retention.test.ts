/**
 * Letters are discarded, archived, restored and purged. Discarded letters do not come back, and none is lost.
 */

import { describe, expect, it } from 'vitest'
import { convertToUuid } from '../../../src/core/ids/ksuid.ts'
import type { Item } from '../../../src/core/items/item.ts'
import { aFailure, anOrigin, bytes, day, hour, minute, newItems, noon, second } from '../../make.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { listArchivedLetters } from '../support/list-letters.ts'
import { describeStores } from '../support/test-stores.ts'

const unknownId = '0'.repeat(27)

describeStores('letter retention', (given) => {
  const actions = createLetterActions(given)
  const archive = async (queue: string, changes: object = {}) =>
    given.run({ op: 'archive', queue, endedBefore: noon + day, countMax: 1_000, now: noon + day, ...changes })
  const restore = async (letterIds: readonly string[], now = noon + 2 * day) =>
    given.run({ op: 'restore', letterIds, now })
  const archived = async (letterIds: readonly string[]) => given.storage.getArchivedLetters(letterIds)

  describe('discard', () => {
    it('a discarded letter stays with its reason and time', async () => {
      const { work, letters } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      const before = await actions.readLetter(letterId)
      const command = {
        op: 'discard',
        letters: [{ letterId }],
        reason: 'a duplicate',
        now: noon + 1,
      } as const
      expect(await given.run(command)).toEqual([{ letterId, isDiscarded: true, refusal: null }])
      const { availableAt, ...rest } = before as Item & { availableAt: null }
      expect(await actions.readLetter(letterId)).toEqual({
        ...rest,
        state: 'discarded',
        endedAt: noon + 1,
        updatedAt: noon + 1,
        letter: { ...before.letter, discardReason: 'a duplicate', nextRedriveAt: null },
      })
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { accepted: 1, waiting: 0, discarded: 1, deleted: 0 },
      ])
    })

    it('DEAD letters can be discarded; leased, resolved or discarded ones cannot', async () => {
      const { work, letters } = await actions.createQueues({}, { attemptsMax: 1 })
      const [dead = '', held = '', sent = '', gone = ''] = await actions.produceDead(work, newItems(4))
      await actions.declareDead(await actions.leaseOne({ queue: letters, partition: 0 }))
      await actions.leaseOne({ queue: letters, partition: 0 })
      await actions.redriveOne(sent)
      const ids = [dead, held, sent, gone, gone, unknownId]
      expect(await actions.discard(ids)).toEqual([
        { letterId: dead, isDiscarded: true, refusal: null },
        { letterId: held, isDiscarded: false, refusal: 'leased' },
        { letterId: sent, isDiscarded: false, refusal: 'redriving' },
        { letterId: gone, isDiscarded: true, refusal: null },
        { letterId: gone, isDiscarded: false, refusal: 'discarded' },
        { letterId: unknownId, isDiscarded: false, refusal: 'missing' },
      ])
    })

    it('a discarded letter is not leased, settled, cleared or advanced', async () => {
      const { work, letters } = await actions.createQueues({}, { leaseTimeoutUs: minute })
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      await actions.discard([letterId])
      const before = await actions.readLetter(letterId)
      const at = { queue: letters, partition: 0, now: noon + 1 }
      expect(await given.run({ op: 'lease', ...at, holders: ['w'] })).toEqual([])
      const missing = { isSettled: false, refused: [{ id: letterId, refusal: 'missing' }] }
      expect(await given.run({ op: 'complete', ...at, ids: [letterId] })).toEqual(missing)
      expect(await given.run({ op: 'extend', ...at, ids: [letterId], deadline: noon + hour })).toEqual(
        missing,
      )
      await given.run({ op: 'advance', now: noon + 10_000 * day, countMax: 10 })
      const all = { isWaiting: true, isScheduled: true, isLeased: true, countMax: 10 }
      expect(await given.run({ op: 'clear', queue: letters, ...all })).toEqual({
        removed: 0,
        discarded: 0,
        next: null,
      })
      expect(await actions.readLetter(letterId)).toEqual(before)
      expect(await given.storage.readNextDueAt()).toBeNull()
    })

    it('capturing a discarded source id again changes nothing', async () => {
      const letters = await given.queue({ partitions: 2 })
      const [letterId = ''] = await actions.capture(letters, [aLetter({ sourceId: 'kafka/7' })])
      await actions.discard([letterId])
      const before = await actions.listItems(letters)
      for (const partition of [0, 1]) {
        const items = [aLetter({ sourceId: 'kafka/7', payload: bytes('again') })]
        const imported = await given.run({ op: 'import', queue: letters, partition, items, now: noon + hour })
        expect(imported).toMatchObject([{ id: null }])
      }
      expect(await actions.listItems(letters)).toEqual(before)
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { accepted: 1 },
        { accepted: 0 },
      ])
    })

    it('a repeated move does not restore a discarded letter', async () => {
      const { work, letters } = await actions.createQueues()
      const lease = { holder: 'w' }
      const { ids } = await given.run({
        op: 'produce',
        queue: work,
        partition: 0,
        items: newItems(1, 'x', { lease }),
        now: noon,
      })
      const [sourceId = ''] = ids
      // As if the move was done before, and the item came back from a backup.
      const [letterId = ''] = await actions.capture(letters, [aLetter({ sourceId })])
      await actions.discard([letterId])
      const before = await actions.listItems(letters)
      const settled = await actions.declareDead({ queue: work, partition: 0, id: sourceId })
      expect(settled).toMatchObject({ changes: [{ to: 'moved', queue: letters, id: letterId }] })
      expect(await actions.listItems(letters)).toEqual(before)
      expect(await actions.listItems(work)).toEqual([])
    })

    it('many letters are discarded at once', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(500))
      const results = await actions.discard(ids)
      expect(results.every(({ isDiscarded }) => isDiscarded)).toBe(true)
      expect(results.map(({ letterId }) => letterId)).toEqual(ids)
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { discarded: 500, waiting: 0 },
      ])
    })
  })

  describe('archive', () => {
    /** One resolved at noon + 1, one DEAD at noon + 2, one discarded at noon + 3, one open. */
    const fourEnds = async () => {
      const { work, letters } = await actions.createQueues({}, { attemptsMax: 1 })
      const [done = '', dead = '', discarded = '', open = ''] = await actions.produceDead(work, newItems(4))
      await actions.complete(await actions.leaseOne(await actions.redriveOne(done)), noon + 1)
      const [held] = await given.run({ op: 'lease', queue: letters, partition: 0, holders: ['w'], now: noon })
      expect(held?.rootId).toBe(dead)
      await actions.declareDead(held as Item, null, noon + 2)
      await actions.discard([discarded], noon + 3)
      return { work, letters, done, dead, discarded, open }
    }

    it('archive takes letters in the requested states only', async () => {
      const { letters, done, dead, discarded, open } = await fourEnds()
      const inArchive = async () =>
        (await archived([done, dead, discarded, open])).map(({ item }) => item.rootId)
      expect(await archive(letters, { states: [] })).toEqual({ archived: 0, isMore: false })
      expect(await archive(letters, { states: ['done'] })).toEqual({ archived: 1, isMore: false })
      expect(await inArchive()).toEqual([done])
      expect(await archive(letters, { states: ['done', 'discarded'] })).toEqual({
        archived: 1,
        isMore: false,
      })
      expect(await inArchive()).toEqual([done, discarded])
      expect(await archive(letters)).toEqual({ archived: 1, isMore: false })
      expect(await inArchive()).toEqual([done, dead, discarded])
      expect(await archive(letters, { endedBefore: noon + 10_000 * day })).toEqual({
        archived: 0,
        isMore: false,
      })
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { accepted: 4, waiting: 1, done: 0, dead: 0, discarded: 0, archived: 3 },
      ])
    })

    it('archive by class keeps DEAD letters of a financial queue', async () => {
      const { letters, done, dead, discarded, open } = await fourEnds()
      const audit = {
        at: noon,
        actor: 'ann',
        action: 'a',
        reason: '',
        requestId: '',
        details: { asked: 'so' },
      }
      const byClass = {
        op: 'archive',
        queue: letters,
        states: 'by-class',
        endedBefore: noon + day,
        countMax: 9,
        now: noon + day,
        audit,
      } as const
      const change = (letterClass: string) =>
        ({ op: 'update-queue', name: letters, changes: { letterClass }, now: noon }) as const
      const [, first] = await given.storage.write([change('financial'), byClass])
      expect(first).toEqual({ archived: 2, isMore: false })
      expect(await given.run(byClass)).toEqual({ archived: 0, isMore: false })
      expect((await archived([done, dead, discarded, open])).map(({ item }) => item.rootId)).toEqual([
        done,
        discarded,
      ])
      const [second] = await given.storage.write([byClass, change('standard')])
      expect(second).toEqual({ archived: 0, isMore: false })
      expect(await given.run(byClass)).toEqual({ archived: 1, isMore: false })
      expect(await archived([dead])).toHaveLength(1)
      const rows = await given.storage.listAudit({ target: letters, countMax: 9 })
      expect(rows.map(({ details }) => details)).toEqual([
        { asked: 'so', states: ['done', 'dead', 'discarded'], letters: 1 },
        { asked: 'so', states: ['done', 'discarded'], letters: 2 },
      ])
    })

    it('archive takes letters in the order of their end, unchanged', async () => {
      const { letters, done, dead, discarded } = await fourEnds()
      const before = await given.storage.getLetters([done, dead, discarded])
      expect(await archive(letters, { endedBefore: noon + 1 })).toEqual({ archived: 0, isMore: false })
      expect(await archive(letters, { endedBefore: noon + 3, countMax: 1 })).toEqual({
        archived: 1,
        isMore: true,
      })
      expect(await archived([done, dead, discarded])).toEqual([{ item: before[0], archivedAt: noon + day }])
      expect(await archive(letters, { endedBefore: noon + 3 })).toEqual({ archived: 1, isMore: false })
      expect(await archive(letters, { endedBefore: noon + 4, now: noon + 2 * day })).toEqual({
        archived: 1,
        isMore: false,
      })
      expect(await archived([done, dead, discarded])).toEqual([
        { item: before[0], archivedAt: noon + day },
        { item: before[1], archivedAt: noon + day },
        { item: before[2], archivedAt: noon + 2 * day },
      ])
      expect(await given.storage.getLetters([done, dead, discarded])).toEqual([])
    })

    it('archive never takes open, leased or redriving letters', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(3))
      await actions.leaseOne({ queue: letters, partition: 0 })
      await actions.redriveOne(ids[1] ?? '')
      expect(await archive(letters, { endedBefore: noon + 10_000 * day })).toEqual({
        archived: 0,
        isMore: false,
      })
      expect(await given.storage.getLetters(ids)).toHaveLength(3)
    })

    it('archived letters keep redrives, history, edits and group, and are found by id', async () => {
      const { work, letters } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      await given.run({ op: 'edit-letter', letterId, payload: bytes('corrected'), actor: 'ann', now: noon })
      const edits = await given.storage.listEdits(letterId)
      await actions.declareDead(await actions.leaseOne(await actions.redriveOne(letterId)), {
        message: 'again',
      })
      await actions.discard([letterId])
      const before = await actions.readLetter(letterId)
      await archive(letters)
      const [row] = await archived([letterId, unknownId])
      expect(row?.item).toEqual(before)
      expect(row?.item).toMatchObject({ retryCount: 1, history: [{ errorCode: 'http_503' }] })
      const uuid = convertToUuid(letterId)
      expect(await given.storage.findLettersByUuid([uuid])).toEqual([{ uuid, letterId }])
      expect(await given.storage.listEdits(letterId)).toEqual(edits)
      await restore([letterId])
      expect(await given.storage.listEdits(letterId)).toEqual(edits)
      expect(await actions.readLetter(letterId)).toMatchObject({ groupId: before.groupId, retryCount: 1 })
    })

    it('archived letters are listed newest first, by queue and page by page', async () => {
      const [one, two] = [await actions.createQueues(), await actions.createQueues()]
      const byTime: string[] = []
      for (const [index, { work, letters }] of [one, two, one, two, one].entries()) {
        const ids = await actions.produceDead(work, newItems(3), undefined, noon + index)
        await actions.discard(ids, noon + index)
        await archive(letters, { now: noon + day + index })
        byTime.unshift(...ids.toSorted().toReversed())
      }
      // Archived items that are not letters are not listed.
      const plain = await given.queue({ onDead: 'keep' })
      await actions.produceDead(plain, newItems(2))
      expect(await archive(plain)).toEqual({ archived: 2, isMore: false })
      const list = async (query: object = {}) =>
        listArchivedLetters(given.storage, { countMax: 100, ...query })
      const ids = (rows: Awaited<ReturnType<typeof list>>) => rows.map(({ item }) => item.rootId)
      expect(ids(await list())).toEqual(byTime)
      expect(ids(await list({ queues: [two.letters] }))).toEqual([
        ...byTime.slice(3, 6),
        ...byTime.slice(9, 12),
      ])
      expect(ids(await list({ queues: [] }))).toEqual([])
      const paged: string[] = []
      let page = await list({ countMax: 4 })
      while (page.length > 0) {
        paged.push(...ids(page))
        const last = page.at(-1)
        page = await list({ countMax: 4, after: { value: last?.archivedAt, id: last?.item.id } })
      }
      expect(paged).toEqual(byTime)
    })

    it('purge removes letters archived before a time', async () => {
      const { work, letters } = await actions.createQueues()
      const other = await actions.createQueues()
      const ids: string[] = []
      for (const { work: queue, letters: dead, at } of [
        { work, letters, at: noon + day },
        { work, letters, at: noon + day + 1 },
        { ...other, at: noon + day },
      ]) {
        const buried = await actions.produceDead(queue, newItems(3))
        await actions.discard(buried)
        await archive(dead, { now: at })
        ids.push(...buried)
      }
      const purge = {
        op: 'purge-archive',
        queue: letters,
        archivedBefore: noon + day + 1,
        countMax: 2,
      } as const
      const [before] = await given.storage.readCounts({ queue: letters })
      expect(before).toMatchObject({ accepted: 6, archived: 6, purged: 0 })
      expect(await given.run({ ...purge, archivedBefore: noon + day })).toEqual({ purged: 0, isMore: false })
      expect(await given.run(purge)).toEqual({ purged: 2, isMore: true })
      expect(await given.run(purge)).toEqual({ purged: 1, isMore: false })
      expect(await given.run(purge)).toEqual({ purged: 0, isMore: false })
      const left = (await archived(ids)).map(({ item }) => item.rootId)
      expect(left).toEqual(ids.slice(3))
      expect(await restore(ids.slice(0, 1))).toMatchObject([{ isRestored: false, refusal: 'missing' }])
      const uuids = ids.map(convertToUuid)
      expect(await given.storage.findLettersByUuid(uuids)).toHaveLength(6)
      expect(await given.storage.readCounts({ queue: letters })).toEqual([
        { ...before, archived: 3, purged: 3 },
      ])
    })
  })

  describe('restore', () => {
    it('restored letters are open again with all their data', async () => {
      const { work, letters } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(
        work,
        newItems(1, 'x', { key: bytes('k'), priority: 3 }),
      )
      await actions.discard([letterId], noon + 1)
      const before = await actions.readLetter(letterId)
      await archive(letters)
      expect(await restore([letterId])).toEqual([{ letterId, isRestored: true, refusal: null }])
      const { endedAt, ...rest } = before as Item & { endedAt: number }
      expect(await actions.readLetter(letterId)).toEqual({
        ...rest,
        state: 'waiting',
        availableAt: null,
        updatedAt: noon + 2 * day,
        letter: { ...before.letter, discardReason: '', restoredAt: noon + 2 * day },
      })
      expect(await archived([letterId])).toEqual([])
      expect(await given.storage.listArchive({ queue: letters, countMax: 10 })).toEqual([])
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { accepted: 1, waiting: 1, discarded: 0, archived: 0 },
      ])
      expect(await restore([letterId])).toEqual([{ letterId, isRestored: false, refusal: 'not-discarded' }])
      const sent = await actions.redriveOne(letterId, noon + 3 * day)
      await actions.complete(await actions.leaseOne(sent))
      expect(await actions.readLetter(letterId)).toMatchObject({ state: 'done' })
    })

    it('restored letters are DEAD if they were DEAD or exhausted, otherwise PENDING', async () => {
      const letters = await given.queue({ attemptsMax: 1 })
      const ids = await actions.capture(letters, [
        aLetter(),
        aLetter({ sourceId: 'b' }),
        aLetter({ retryCount: 12 }),
      ])
      await actions.complete(await actions.leaseOne({ queue: letters, partition: 0 }))
      await actions.declareDead(await actions.leaseOne({ queue: letters, partition: 0 }))
      await actions.discard(ids.slice(2))
      await archive(letters)
      const asked = [unknownId, ...ids, ids[0] ?? '']
      expect((await restore(asked)).map(({ isRestored, refusal }) => [isRestored, refusal])).toEqual([
        [false, 'missing'],
        [true, null],
        [true, null],
        [true, null],
        [false, 'not-discarded'],
      ])
      const states = (await given.storage.getLetters(ids)).map(({ state }) => state)
      expect(states).toEqual(['waiting', 'dead', 'dead'])
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([
        { waiting: 1, dead: 2, archived: 0 },
      ])
      // Their retention time starts again.
      expect(await archive(letters)).toEqual({ archived: 0, isMore: false })
      expect(await actions.redrive(ids.slice(1, 2))).toMatchObject([{ refusal: 'dead' }])
    })

    it('a restore is refused if the source id exists in the queue again', async () => {
      const letters = await given.queue()
      const capture = async () => actions.capture(letters, [aLetter({ sourceId: 's' })])
      const [first = ''] = await capture()
      await actions.discard([first])
      await archive(letters)
      const [second = ''] = await capture()
      const before = await actions.readLetter(second)
      expect(await restore([first])).toEqual([{ letterId: first, isRestored: false, refusal: 'taken' }])
      expect(await actions.readLetter(second)).toEqual(before)
      expect(await archived([first])).toHaveLength(1)
      await actions.discard([second])
      await archive(letters)
      expect(await restore([first])).toEqual([{ letterId: first, isRestored: true, refusal: null }])
    })

    it('only one of two archived letters with the same source id is restored', async () => {
      const letters = await given.queue()
      const ids: string[] = []
      for (let turn = 0; turn < 2; turn++) {
        ids.push(...(await actions.capture(letters, [aLetter({ sourceId: 's' })])))
        await actions.discard(ids.slice(-1))
        await archive(letters)
      }
      const results = await restore(ids)
      expect(results.map(({ refusal }) => refusal).toSorted()).toEqual([null, 'taken'].toSorted())
      expect(await actions.listItems(letters)).toHaveLength(1)
      expect(await archived(ids)).toHaveLength(1)
    })

    it('a restore is refused if the queue is gone or the letter unknown', async () => {
      const { work, letters } = await actions.createQueues()
      const [letterId = ''] = await actions.produceDead(work, newItems(1))
      await actions.discard([letterId])
      await archive(letters)
      const keeps = await given.queue({ onDead: 'keep' })
      const { ids } = await given.run({
        op: 'produce',
        queue: keeps,
        partition: 0,
        items: newItems(1, 'x', { lease: { holder: 'w' } }),
        now: noon,
      })
      await actions.declareDead({ queue: keeps, partition: 0, id: ids[0] ?? '' })
      await archive(keeps)
      expect(await restore(ids)).toMatchObject([{ isRestored: false, refusal: 'missing' }])
      await given.run({ op: 'delete-queue', name: work })
      await given.run({ op: 'delete-queue', name: letters })
      const [result] = await restore([letterId])
      expect(result?.isRestored).toBe(false)
      expect(['missing', 'queue-gone']).toContain(result?.refusal)
    })

    it('concurrent restores restore a letter once', async () => {
      const { work, letters } = await actions.createQueues()
      const ids = await actions.produceDead(work, newItems(20))
      await actions.discard(ids)
      await archive(letters)
      const calls = await Promise.all(Array.from({ length: 6 }, async () => restore(ids)))
      for (const letterId of ids) {
        const results = calls.map((call) => call.find((each) => each.letterId === letterId)?.isRestored)
        expect(results.filter(Boolean)).toHaveLength(1)
      }
      expect(await given.storage.getLetters(ids)).toHaveLength(20)
      expect(await given.storage.readCounts({ queue: letters })).toMatchObject([{ waiting: 20, archived: 0 }])
    })
  })

  it('a restored letter returns to its group without a new arrival', async () => {
    const letters = await given.queue()
    const failure = aFailure({ message: 'the same' })
    const ids = await actions.capture(
      letters,
      [aLetter({ failure }), aLetter({ failure, origin: anOrigin() })],
      noon + second,
    )
    const states = async () =>
      (await given.storage.listGroups({ filter: {}, isEmptyToo: true, countMax: 10 })).map(
        (group) => group.states,
      )
    expect(await states()).toEqual([{ waiting: 2 }])
    await actions.discard(ids.slice(0, 1))
    expect(await states()).toEqual([{ waiting: 1, discarded: 1 }])
    await archive(letters)
    expect(await states()).toEqual([{ waiting: 1 }])
    await restore(ids)
    expect(await states()).toEqual([{ waiting: 2 }])
  })
})
