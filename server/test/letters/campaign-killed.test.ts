/** A server that works on a campaign is killed before or after each of its writes; another one ends it. */
import { expect, it } from 'vitest'
import type { Campaign } from '../../src/letters/letters.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { minute, second } from '../make.ts'
import { killStorageAtWrite } from './failing-storage.ts'
import {
  ann,
  aSpec,
  captured,
  consume,
  createQueuePair,
  createTestSystem,
  lettersFrom,
  type TestSystem,
} from './test-system.ts'

const letterCount = 23
const campaignSteps = { frozenMax: 6, sentMax: 5 }
const isGood = (payload: string) => !payload.endsWith('3')

async function workUntilEnd(
  world: TestSystem,
  id: string,
  letters: TestSystem['letters'],
  takeAll: () => Promise<void>,
): Promise<void> {
  for (let rounds = 0; rounds < 300; rounds++) {
    await letters.passes.campaigns()
    await takeAll()
    world.tick(second)
    const campaign = (await world.letters.campaigns.get(id)) as Campaign
    if (campaign.endedAt !== null) return
  }
  throw new Error('does not end')
}

describeTheseStores(['SQLite memory', 'PostgreSQL'], 'a campaign whose server is killed', (given) => {
  const runKilled = async (writes: number, when: 'before' | 'after') => {
    const world = createTestSystem(given.storage, { campaignSteps })
    const { queue, deadQueue } = await createQueuePair(world)
    const ids = await captured(world, deadQueue, lettersFrom(queue, letterCount))
    const spec = aSpec(deadQueue, { canaryCount: 4, ratePerSecond: 7 })
    const { id } = await world.letters.campaigns.create(spec, ann)

    const { storage, isDead } = killStorageAtWrite(given.storage, writes, when)
    const seen: string[] = []
    const takeAll = async (): Promise<void> => {
      seen.push(...(await consume(world, queue, isGood)))
    }
    try {
      await workUntilEnd(world, id, world.startServer(storage).letters, takeAll)
    } catch (error) {
      if (!isDead()) throw error
      // Workers survive the kill and process the letters that were sent before it.
      await takeAll()
      world.tick(minute)
      await workUntilEnd(world, id, world.startServer().letters, takeAll)
    }
    const { state, size, counts } = (await world.letters.campaigns.get(id)) as Campaign
    const letters = await given.storage.getLetters(ids)
    const outcome = {
      state,
      size,
      counts,
      sent: letters.map(({ letter }) => letter?.requeueCount),
      states: letters.map((letter) => letter.state),
      places: (await world.letters.campaigns.listLetters(id, { countMax: 100 })).map((each) => [
        ids.indexOf(each.letterId),
        each.state,
      ]),
    }
    await world.close()
    return { outcome, seen, wasKilled: isDead() }
  }

  it.each(['before', 'after'] as const)(
    'a campaign whose server is killed %s any of its writes ends with the same result',
    async (when) => {
      const whole = await runKilled(Number.POSITIVE_INFINITY, when)
      expect(whole.outcome).toMatchObject({
        state: 'done',
        size: letterCount,
        counts: { resolved: 21, failed: 2 },
        sent: Array(letterCount).fill(1),
      })
      let kills = 0
      for (let writes = 1; ; writes++) {
        const { outcome, seen, wasKilled } = await runKilled(writes, when)
        expect(outcome, `killed ${when} write ${writes}`).toEqual(whole.outcome)
        // Nothing was sent twice, nothing was left out.
        expect(seen.sort(), `killed ${when} write ${writes}`).toEqual(whole.seen.toSorted())
        if (!wasKilled) break
        kills++
      }
      expect(kills).toBeGreaterThan(15)
    },
    120_000,
  )
})
