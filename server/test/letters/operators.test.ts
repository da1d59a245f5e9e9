/**
 * Two servers, several people and workers act in a random order, and servers are killed during their writes.
 * In every case, each redrive creates one item, each item ends one redrive, the counts match the rows
 * (checked after each test), and the counts of each campaign add up.
 */
import { expect, it } from 'vitest'
import type { Campaign, Letters } from '../../src/letters/letters.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { day, minute, second } from '../make.ts'
import { repeats, withRandom } from '../random-test.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { killStorageAtWrite } from './failing-storage.ts'
import { ann, aSpec, createQueuePair, createTestSystem, lettersFrom } from './test-system.ts'

const runs = repeats(6)
const acts = 60

describeTheseStores(
  ['SQLite memory', 'PostgreSQL'],
  'dead letters amid people, workers and kills',
  (given) => {
    const live = async ({ seed, next: random }: SeededRandom) => {
      const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)]
      const world = createTestSystem(given.storage, { campaignSteps: { frozenMax: 4, sentMax: 3 } })
      const backoff = { kind: 'fixed', delayUs: minute, jitter: 0.5 } as const
      const auto = await createQueuePair(world, { redrive: { mode: 'auto', redrivesMax: 3, backoff } })
      const manual = await createQueuePair(world)
      const pairs = [auto, manual]
      const letterIds = new Set<string>()
      const campaignIds: string[] = []
      /** How often workers were given a copy of a letter. */
      const taken = new Map<string, number>()

      const work = async (queue: string): Promise<void> => {
        const now = world.now()
        const holders = Array(5).fill('worker')
        const [items] = await given.storage.write([{ op: 'lease', queue, partition: 0, holders, now }])
        for (const { id, letterId } of items) {
          taken.set(letterId ?? '', (taken.get(letterId ?? '') ?? 0) + 1)
          const chance = random()
          if (chance < 0.5) await given.run({ op: 'complete', queue, partition: 0, ids: [id], now })
          else if (chance < 0.9) {
            const back = { id, isDead: true, error: null, chance, availableAt: null }
            await given.run({ op: 'retry', queue, partition: 0, items: [back], now })
          } else await given.run({ op: 'delete', queue, partition: 0, ids: [id] })
        }
      }
      /** Some letters, mostly some that are there. */
      const some = (): string[] => [...letterIds].filter(() => random() < 0.2)
      const how = () => ({
        target: null,
        edit: null,
        isDeadAllowed: random() < 0.3,
        isCapped: random() < 0.5,
      })
      const campaign = async (letters: Letters): Promise<void> => {
        const { deadQueue } = pick(pairs) ?? manual
        const ids = some()
        const made = await letters.campaigns.create(
          aSpec(deadQueue, {
            action: random() < 0.8 ? 'redrive' : 'discard',
            ...(random() < 0.5 && ids.length > 0 && { selection: { letterIds: ids } }),
            canaryCount: Math.floor(random() * 4),
            ratePerSecond: random() < 0.5 ? 0 : 5,
            haltRatio: random(),
            isDeadAllowed: random() < 0.5,
          }),
          ann,
        )
        campaignIds.push(made.id)
      }
      const decide = async ({ campaigns }: Letters): Promise<void> => {
        const id = pick(campaignIds)
        const act = pick(['pause', 'resume', 'cancel'] as const)
        if (id !== undefined && act !== undefined) await campaigns[act](id, ann)
      }
      const acting = [
        async (letters: Letters) => {
          const { queue, deadQueue } = pick(pairs) ?? manual
          const fresh = lettersFrom(queue, 5).map((letter) => {
            const sourceId = `${queue}/${Math.floor(random() * 60)}`
            return { ...letter, sourceId, diedAt: world.now() }
          })
          for (const { letterId } of await letters.capture(deadQueue, fresh, ann)) letterIds.add(letterId)
        },
        async (letters: Letters) => void (await letters.redrive(some(), how(), ann)),
        async (letters: Letters) => void (await letters.discard(some().slice(0, 2), ann)),
        async (letters: Letters) => void (await letters.restore(some(), ann)),
        campaign,
        decide,
        (letters: Letters) => letters.passes.campaigns(),
        (letters: Letters) => letters.passes.campaigns(),
        (letters: Letters) => letters.passes.campaigns(),
        (letters: Letters) => letters.passes.auto(),
        (letters: Letters) => letters.passes.retention(),
        () => work((pick(pairs) ?? manual).queue),
        () => work((pick(pairs) ?? manual).queue),
        async () => world.tick(pick([second, minute, minute, 16 * day]) ?? 0),
      ]

      const servers = [world.letters, world.startServer().letters]
      for (let index = 0; index < acts; index++) {
        const act = pick(acting)
        if (act === undefined) continue
        const isKilled = random() < 0.2
        const killed = killStorageAtWrite(
          given.storage,
          1 + Math.floor(random() * 3),
          random() < 0.5 ? 'before' : 'after',
        )
        const letters = isKilled
          ? world.startServer(killed.storage).letters
          : (pick(servers) ?? world.letters)
        try {
          await act(letters)
        } catch (error) {
          // Accept a refused action and a killed server; any other error is a defect.
          const isRefused = error instanceof Error && /cannot be|killed/.test(error.message)
          if (!isRefused) throw new Error(`seed ${seed}, act ${index}`, { cause: error })
        }
        expect(await given.storage.verify(), `seed ${seed}, act ${index}`).toEqual([])
      }

      // Let everything that is in progress end.
      for (const id of await known(world.letters)) {
        await world.letters.campaigns.resume(id, ann).catch(() => undefined)
      }
      for (let rounds = 0; ; rounds++) {
        world.tick(20 * second)
        await world.work()
        for (const { queue } of pairs) await work(queue)
        const campaigns = await world.letters.campaigns.list({ countMax: 100 })
        for (const { id, state } of campaigns) {
          if (state === 'halted') await world.letters.campaigns.resume(id, ann)
        }
        const leased = await given.storage.countLetters({ filter: { states: ['leased'] }, by: [] })
        if (campaigns.every(({ endedAt }) => endedAt !== null) && leased.length === 0) break
        if (rounds > 300) {
          const filter = { states: ['leased'] } as const
          const left = await given.storage.listLetters({
            filter,
            order: 'diedAt',
            isDescending: false,
            countMax: 5,
            lookMax: 1_000,
            bytes: 'none',
          })
          throw new Error(
            `seed ${seed} does not end: ${JSON.stringify({ leased, left, campaigns }).slice(0, 4_000)}`,
          )
        }
      }
      return { world, letterIds, taken, pairs }
    }

    const known = async ({ campaigns }: Letters): Promise<string[]> =>
      (await campaigns.list({ countMax: 100 })).map(({ id }) => id)

    it('every letter was sent as often as it records, and the counts of every campaign add up', {
      timeout: 300_000,
    }, async () => {
      for (let run = 0; run < runs; run++) await withRandom(check, run)
    })

    async function check(chance: SeededRandom): Promise<void> {
      const { seed } = chance
      const { world, letterIds, taken, pairs } = await live(chance)
      for (const id of letterIds) {
        const { item } = (await world.letters.find(id)) ?? {}
        // Only letters that were in the archive for a year may be gone.
        if (item === undefined) continue
        expect(item.letter?.requeues, `seed ${seed}, letter ${id}`).toBe(taken.get(id) ?? 0)
        expect(item.letter?.redrives.every(({ outcome }) => outcome !== null)).toBe(true)
      }
      for (const { id, size, counts, state } of await world.letters.campaigns.list({ countMax: 100 })) {
        const at = `seed ${seed}, campaign ${id}`
        expect(['done', 'cancelled'], at).toContain(state satisfies Campaign['state'])
        expect(counts.pending + counts.sent, at).toBe(0)
        expect(
          Object.values(counts).reduce((sum, count) => sum + count, 0),
          at,
        ).toBe(size)
        const trail = await given.storage.listAudit({ target: id, action: 'campaign.create', countMax: 9 })
        expect(trail, at).toHaveLength(1)
      }
      await world.close()
      // Else the policies of this life would go on in the next.
      for (const { queue, deadQueue } of pairs) {
        await given.storage.write([
          { op: 'delete-queue', name: queue },
          { op: 'delete-queue', name: deadQueue },
        ])
      }
    }
  },
)
