/**
 * Two servers on one PostgreSQL run random actions on the same dead letters at the same time. The results
 * that each of them got are recorded and must be consistent in the end.
 */

import { expect, it } from 'vitest'
import type { Outcome } from '../../../src/core/items/item.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { aFailure, bytes, minute, newItems, noon, second } from '../../make.ts'
import { repeats, withRandom } from '../../random-test.ts'
import type { SeededRandom } from '../../seeded-random.ts'
import { expectConsistentStore, expectUnique } from '../support/expect-consistent-store.ts'
import { aLetter, createLetterActions } from '../support/letter-actions.ts'
import { listArchivedLetters, listLetters } from '../support/list-letters.ts'
import { listAll, run } from '../support/store-reads.ts'
import { describeTheseStores } from '../support/test-stores.ts'
import { runOnTwoServers, type Worker } from '../support/two-servers.ts'

const stepsEach = repeats(60)
const workersEach = 4

class CallLog {
  readonly buried: string[] = []
  /**
   * Letter and number of each redrive that was reported as started, and of each that was reported as ended.
   */
  readonly started: string[] = []
  readonly resolved: string[] = []
  readonly failed: string[] = []
  readonly discarded: string[] = []
  readonly restored: string[] = []
  archived = 0
}

describeTheseStores(['PostgreSQL'], 'two servers and the same letters', (given) => {
  const actions = createLetterActions(given)

  it('a letter that is archived and restored is never reported as missing', async () => {
    const { work, letters } = await actions.createQueues()
    const ids = await actions.produceDead(work, newItems(10))
    const other = await given.testStore.open()
    let isMoving = true
    const moving = (async () => {
      for (let times = 0; times < 100; times++) {
        const now = noon + times * minute
        await given.run({ op: 'discard', letters: ids.map((letterId) => ({ letterId })), reason: '', now })
        await given.run({ op: 'archive', queue: letters, endedBefore: now + 1, countMax: 100, now })
        await given.run({ op: 'restore', letterIds: ids, now })
      }
    })().finally(() => {
      isMoving = false
    })
    const results = new Set<string>()
    const how = { isDeadAllowed: true, isCapped: false, actor: 'ann', now: noon } as const
    while (isMoving) {
      const asked = ids.map((letterId) => ({ letterId, queue: 'nowhere' }))
      for (const each of await run(other, { op: 'redrive', letters: asked, ...how })) {
        results.add(each.isStarted ? 'started' : each.refusal)
      }
    }
    await moving
    expect(results).not.toContain('missing')
    expect([...results].every((refusal) => ['no-target', 'discarded', 'archived'].includes(refusal))).toBe(
      true,
    )
    expect(results.size).toBeGreaterThan(1)
  })

  it('two servers under random load start and end each redrive once and lose no letter', {
    timeout: 120_000,
  }, async () => {
    await withRandom(async (random) => {
      const backoff = { kind: 'fixed', delayUs: minute, jitter: 0.2 } as const
      const { work, letters } = await actions.createQueues(
        { partitions: 2, leaseTimeoutUs: 10 * second, attemptsMax: 2 },
        { partitions: 2, redrive: { mode: 'auto', redrivesMax: 3, backoff } },
      )
      const callLog = new CallLog()
      const tick = () => random.below(200_000)
      const act = ({ storage, name }: Worker, now: number) =>
        actRandomly({ storage, work, letters, random, callLog, now, name })
      await runOnTwoServers(given, { workersEach, stepsEach, tick, act })
      await expectConsistentStore(given.storage)
      expectUnique(callLog.started, 'redrives that started twice')
      expectUnique([...callLog.resolved, ...callLog.failed], 'redrives that ended twice')

      const archive = await given.storage.listArchive({ queue: letters, countMax: 100_000 })
      const live = await listAll(given.storage, letters)
      const all = [...live, ...archive.map(({ item }) => item)]
      expect(all.map(({ rootId }) => rootId).toSorted()).toEqual(callLog.buried.toSorted())
      const outcomes = new Map<string, Outcome | null>(
        all.flatMap(({ rootId, letter }) =>
          (letter?.redrives ?? []).map(({ number, outcome }) => [`${rootId}/${number}`, outcome] as const),
        ),
      )
      expect([...outcomes.keys()].toSorted()).toEqual(callLog.started.toSorted())
      for (const redrive of callLog.resolved) expect(outcomes.get(redrive), redrive).toBe('resolved')
      for (const redrive of callLog.failed) expect(outcomes.get(redrive), redrive).toBe('failed')
      // A restore may also find a letter that is back from the archive and discarded again.
      expect(archive.length).toBeGreaterThanOrEqual(callLog.archived - callLog.restored.length)
      expect(archive.length).toBeLessThanOrEqual(callLog.archived)
      expect(callLog.started.length, 'or else it proves nothing').toBeGreaterThan(50)
    })
  })

  it('two servers start only one redrive of a letter', async () => {
    const other = await given.testStore.open()
    const { work } = await actions.createQueues()
    for (let round = 0; round < 15; round++) {
      const ids = await actions.produceDead(work, newItems(5))
      const redrive = (order: readonly string[]) => ({
        op: 'redrive' as const,
        letters: order.map((letterId) => ({ letterId, queue: null })),
        ...{ isDeadAllowed: false, isCapped: true, actor: 'x', now: noon },
      })
      const calls = await Promise.all([
        run(given.storage, redrive(ids)),
        run(other, redrive(ids.toReversed())),
        run(other, {
          op: 'discard',
          letters: ids.slice(0, 2).map((letterId) => ({ letterId })),
          reason: 'x',
          now: noon,
        }),
      ])
      for (const letterId of ids) {
        const won = calls.flatMap((call) =>
          call.filter(
            (each) => each.letterId === letterId && ('isStarted' in each ? each.isStarted : each.isDiscarded),
          ),
        )
        expect(won, `round ${round}`).toHaveLength(1)
      }
    }
    await other.close()
  })

  it('concurrent dead-letter moves and returns on two servers do not deadlock', async () => {
    const other = await given.testStore.open()
    const { work, letters } = await actions.createQueues({ leaseTimeoutUs: second })
    const ids = await actions.produceDead(work, newItems(40))
    await actions.redrive(ids)
    const holders = Array.from({ length: 20 }, () => 'w')
    const lease = { op: 'lease', queue: work, partition: 0, holders, now: noon } as const
    const [mine, theirs] = [await run(given.storage, lease), await run(other, lease)]
    const die = (storage: Storage, items: readonly { id: string }[]) => {
      const dead = items.map(({ id }) => ({ id, availableAt: null, isDead: true, error: { message: id } }))
      return run(storage, { op: 'retry', queue: work, partition: 0, items: dead, now: noon })
    }
    // The servers take the same letters in opposite order: one ends redrives, the other starts some.
    await Promise.all([
      die(given.storage, mine),
      die(other, theirs.toReversed()),
      actions.redrive(ids.toReversed()),
      // Refused while a redrive of one of the letters is in progress.
      run(other, { op: 'delete', queue: letters, partition: 0, ids: ids.slice(0, 5) }).catch((error) =>
        expect(error).toMatchObject({ code: 'LETTER_NOT_DISCARDABLE' }),
      ),
      run(other, { op: 'advance', now: noon + minute, countMax: 100 }),
    ])
    await other.close()
    expect((await listAll(given.storage, letters)).length).toBeGreaterThanOrEqual(35)
  })

  it('two servers agree on when each group was first seen', async () => {
    const other = await given.testStore.open()
    const queue = await given.queue({ partitions: 2 })
    const classes = [...'abcdefgh'].map((letter) => `Class_${letter}`)
    const servers = [given.storage, other]
    const rounds = 20
    for (let round = 1; round <= rounds; round++) {
      // Both servers import at the same time in opposite order, each a little before all earlier deaths.
      await Promise.all(
        servers.map((storage, server) => {
          const items = classes.map((errorClass, position) =>
            aLetter({
              failure: aFailure({ errorClass }),
              deadLetteredAt: noon - round * second - ((position + server) % 2),
            }),
          )
          if (server === 1) items.reverse()
          return run(storage, { op: 'import', queue, partition: server, items, now: noon })
        }),
      )
    }
    const groups = await other.listGroups({ filter: { queues: [queue] }, isEmptyToo: false, countMax: 100 })
    await other.close()
    expect(groups).toHaveLength(classes.length)
    for (const { firstSeenAt, lastSeenAt } of groups)
      expect([firstSeenAt, lastSeenAt]).toEqual([noon - rounds * second - 1, noon - second])
  })
})

type Act = Readonly<{
  storage: Storage
  work: string
  letters: string
  random: SeededRandom
  callLog: CallLog
  now: number
  name: string
}>

async function actRandomly({ storage, work, letters, random, callLog, now, name }: Act): Promise<void> {
  const at = { queue: work, partition: random.below(2) }
  const pickLetters = async (countMax: number): Promise<string[]> => {
    const page = await listLetters(storage, {
      filter: { queues: [letters] },
      order: 'deadLetteredAt',
      isDescending: random.below(2) === 0,
      countMax,
      examinedMax: 100,
      bytes: 'none',
    })
    return page.letters.map(({ rootId }) => rootId)
  }
  if (random.below(3) === 0) await storage.prefetchLetters(await pickLetters(20))
  switch (random.below(8)) {
    case 0: {
      const items = [
        { payload: bytes(name), lease: { holder: 'w' } },
        { payload: bytes(name), lease: { holder: 'w' } },
      ]
      const { ids } = await run(storage, { op: 'produce', ...at, items, now })
      const dead = ids.map((id) => ({ id, availableAt: null, isDead: true, error: { message: 'gone' } }))
      const settled = await run(storage, { op: 'retry', ...at, items: dead, now })
      if (settled.isSettled) callLog.buried.push(...settled.changes.map(({ id }) => id ?? ''))
      return
    }
    case 1:
    case 2: {
      const sent = (await pickLetters(6)).map((letterId) => ({ letterId, queue: null }))
      const rules = { isDeadAllowed: true, isCapped: false, actor: name, now }
      const results = await run(storage, { op: 'redrive', letters: sent, ...rules })
      callLog.started.push(
        ...results.flatMap((each) => (each.isStarted ? [`${each.letterId}/${each.number}`] : [])),
      )
      return
    }
    case 3: {
      const given = (await pickLetters(20)).slice(-1).map((letterId) => ({ letterId }))
      const results = await run(storage, { op: 'discard', letters: given, reason: name, now })
      callLog.discarded.push(...results.flatMap((each) => (each.isDiscarded ? [each.letterId] : [])))
      return
    }
    case 4: {
      const command = { op: 'archive', queue: letters, endedBefore: now, countMax: 3, now } as const
      const { archived } = await run(storage, command)
      callLog.archived += archived
      return
    }
    case 5: {
      const rows = await listArchivedLetters(storage, { queues: [letters], countMax: 3 })
      const letterIds = rows.map(({ item }) => item.rootId)
      const results = await run(storage, { op: 'restore', letterIds, now })
      callLog.restored.push(...results.flatMap((each) => (each.isRestored ? [each.letterId] : [])))
      return
    }
    default: {
      const held = await run(storage, { op: 'lease', ...at, holders: ['w', 'w', 'w'], now })
      // An item whose lease ended before it was declared dead is not a letter yet.
      const [one, two] = held.filter(({ letterId }) => letterId !== null)
      if (one !== undefined) {
        const settled = await run(storage, { op: 'complete', ...at, ids: [one.id], now })
        if (settled.isSettled) callLog.resolved.push(`${one.letterId}/${one.retryCount}`)
      }
      if (two !== undefined) {
        const items = [{ id: two.id, availableAt: null, isDead: true, error: { message: name } }]
        const settled = await run(storage, { op: 'retry', ...at, items, now })
        if (settled.isSettled) callLog.failed.push(`${two.letterId}/${two.retryCount}`)
      }
    }
  }
}
