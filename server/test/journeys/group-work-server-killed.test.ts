/**
 * A server is killed while it merges groups, groups all letters of a queue again, and splits a group. Each
 * round starts the next server, which continues. REDRIVE_TEST_SEEDS sets the number of kills of each job.
 */
import { describe, expect, it } from 'vitest'
import { type Client, createClient } from '../../../client/src/index.ts'
import { createTestStore, needsOf } from '../conformance/support/test-stores.ts'
import { pollUntil } from '../http/poll-until.ts'
import { type ServerProcess, startServerProcess } from '../http/server-process.ts'
import { repeats, withRandom } from '../random-test.ts'
import type { SeededRandom } from '../seeded-random.ts'

const depots = ['north', 'south', 'east', 'west']
/** As many as one call takes. */
const lettersPerDepot = 1_000
const letterCount = depots.length * lettersPerDepot
const kills = repeats(1)

type Killed = { server: ServerProcess; client: Client }

describe.each(['SQLite file', 'PostgreSQL'] as const)(
  'work on groups whose server is killed (%s)',
  (store) => {
    const name = 'merges, regroup jobs and splits keep all letters and counts, and the next server continues'
    it(name, { ...needsOf(store), timeout: 240_000 }, async () => {
      const testStore = await createTestStore(store)
      const start = async (): Promise<Killed> => {
        const server = await startServerProcess(testStore.target)
        return { server, client: createClient({ url: server.url, retriesMax: 0 }) }
      }
      try {
        await withRandom((random) => workWithKills(start, random))
        const opened = await testStore.open()
        expect(await opened.verify()).toEqual([])
      } finally {
        await testStore.drop()
      }
    })
  },
)

async function workWithKills(start: () => Promise<Killed>, random: SeededRandom): Promise<void> {
  let running = await start()
  await fill(running.client)
  const before = await listCounts(running.client)
  expect(before.map(({ count }) => count)).toEqual(depots.map(() => lettersPerDepot))
  const [into, ...others] = before.map(({ id }) => id) as [number, ...number[]]

  running = await mergeWithKill(running, start, [into, others.slice(0, 2)])
  for (const id of others.slice(0, 2))
    expect(await running.client.getGroup(id)).toMatchObject({ id: into, count: 3 * lettersPerDepot })
  expect(await countAll(running.client)).toBe(letterCount)

  const rule = { name: 'depot', as: 'variable', pattern: 'the (\\w+) depot' } as const
  await running.client.setGroupingRules('dead', [rule])
  const { id } = await running.client.regroupQueue('dead')
  running = await finishWithKills(id, running, start, random)
  const [all, ...rest] = await listCounts(running.client)
  expect({ count: all?.count, rest }).toEqual({ count: letterCount, rest: [] })

  const job = await running.client.splitGroup(all?.id as number, { message: 'the north depot' })
  running = await finishWithKills(job.id, running, start, random)
  expect((await listCounts(running.client)).map(({ count }) => count)).toEqual([
    letterCount - lettersPerDepot,
    lettersPerDepot,
  ])
  await running.server.kill()
}

async function fill(client: Client): Promise<void> {
  await client.createQueue({ name: 'dead' })
  await client.createQueue({ name: 'live', policy: { deadQueue: 'dead' } })
  for (const depot of depots) {
    const letters = Array.from({ length: lettersPerDepot }, (_, at) => ({
      original_queue: 'live',
      original_value: { at },
      error_details: { exception_class: 'StockError', message: `stock of the ${depot} depot is low: ${at}` },
    }))
    await client.captureLetters('dead', letters)
  }
}

type Counted = Readonly<{ id: number; count: number }>

async function listCounts(client: Client): Promise<Counted[]> {
  const { groups } = await client.listGroups({ queue: 'dead' })
  return groups.map(({ id, count }) => ({ id, count }))
}

async function countAll(client: Client): Promise<number> {
  return (await listCounts(client)).reduce((sum, { count }) => sum + count, 0)
}

/** The merge happened or not when its server died; repeated, it has happened once. */
async function mergeWithKill(
  { server, client }: Killed,
  start: () => Promise<Killed>,
  [into, others]: readonly [number, readonly number[]],
): Promise<Killed> {
  const merged = client.mergeGroups(into, others).catch(() => 'cut')
  await server.kill()
  await merged
  const next = await start()
  await next.client.mergeGroups(into, others)
  return next
}

async function finishWithKills(
  jobId: string,
  first: Killed,
  start: () => Promise<Killed>,
  random: SeededRandom,
): Promise<Killed> {
  let running = first
  for (let kill = 0; kill < kills; kill++) {
    const { client } = running
    const { examined_count } = await client.getGroupJob(jobId)
    const until = examined_count + 1 + random.below(2_000)
    const job = await pollUntil(
      () => client.getGroupJob(jobId),
      (each) => each.state !== 'running' || each.examined_count >= until,
      60_000,
    )
    if (job.state !== 'running') break
    await running.server.kill()
    running = await start()
    expect(await countAll(running.client)).toBe(letterCount)
  }
  const isDone = ({ state }: { state: string }) => state === 'done'
  await pollUntil(() => running.client.getGroupJob(jobId), isDone, 60_000)
  return running
}
