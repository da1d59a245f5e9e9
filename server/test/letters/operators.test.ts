/**
 * Two servers, several people and workers act in a random order, and servers are killed during their writes.
 * In every case, each redrive creates one item, each item ends one redrive, the counts match the rows
 * (checked after each action and after each test), the counts of each campaign add up, and no letter is gone
 * that was not purged from the archive.
 */
import { expect, it } from 'vitest'
import type { Campaign } from '../../src/letters/letters.ts'
import type { Storage } from '../../src/storage/contract/storage.ts'
import { describeTheseStores } from '../conformance/support/test-stores.ts'
import { repeats, withRandom } from '../random-test.ts'
import { RandomOperators } from './random-operators.ts'

const runs = repeats(6)
const actions = 60

describeTheseStores(
  ['SQLite memory', 'PostgreSQL'],
  'dead letters with random people, workers and kills',
  (given) => {
    it('no letter is lost, every letter was sent as often as it records, and the counts of campaigns add up', {
      timeout: 300_000,
    }, async () => {
      for (let run = 0; run < runs; run++) {
        await withRandom(async (random) => {
          const operators = await RandomOperators.create(given, random)
          await operators.act(actions)
          await operators.finish()
          await checkLetters(operators)
          await checkCampaigns(operators, given.storage)
          await operators.system.close()
          await operators.deleteQueues()
        }, run)
      }
    })
  },
)

async function checkLetters(operators: RandomOperators): Promise<void> {
  const { system, letterIds, leases } = operators
  let missing = 0
  for (const id of letterIds) {
    const { item } = (await system.letters.find(id)) ?? {}
    if (item === undefined) {
      missing++
      continue
    }
    expect(item.letter?.requeueCount, `letter ${id}`).toBe(leases.get(id) ?? 0)
    expect(item.letter?.redrives.every(({ outcome }) => outcome !== null)).toBe(true)
  }
  expect(missing, 'letters that are gone without having been purged from the archive').toBe(
    await operators.countPurged(),
  )
}

async function checkCampaigns({ system }: RandomOperators, storage: Storage): Promise<void> {
  for (const { id, size, counts, state } of await system.letters.campaigns.list({ countMax: 100 })) {
    const name = `campaign ${id}`
    expect(['done', 'cancelled'], name).toContain(state satisfies Campaign['state'])
    expect(counts.pending + counts.sent, name).toBe(0)
    const sum = Object.values(counts).reduce((total, count) => total + count, 0)
    expect(sum, name).toBe(size)
    const rows = await storage.listAudit({ target: id, action: 'campaign.create', countMax: 9 })
    expect(rows, name).toHaveLength(1)
  }
}
