/**
 * Checks invariants of dead letters that hold for every store at any time. Recounts from the items, not from
 * the counts of the store.
 */
import { expect } from 'vitest'
import { type Cause, foldCause, toCause } from '../../../src/core/dead-letters/cause.ts'
import { isRedriving } from '../../../src/core/dead-letters/letter.ts'
import { type Item, isLetter } from '../../../src/core/items/item.ts'
import { type GroupFacts, type LetterCount, redrivesCounted } from '../../../src/storage/contract/letters.ts'
import type { Storage } from '../../../src/storage/contract/storage.ts'
import { toGauge } from './store-reads.ts'

/** `items`: all items of all queues. */
export async function expectConsistentLetters(storage: Storage, items: readonly Item[]): Promise<void> {
  const stored = items.filter(isLetter)
  const letters = await withShownGroups(storage, stored)
  for (const item of items) expectFactsOfLettersOnly(item)
  await expectOneRedriveEach(storage, letters, items)

  const by = ['queue', 'state', 'group', 'retryCount'] as const
  expect(sortCounts(await storage.countLetters({ filter: {}, by })), 'letters by group').toEqual(
    recount(letters),
  )
  const groups = await listAllGroups(storage)
  const byGroup = Map.groupBy(letters, (letter) => letter.groupId)
  const ownGroups = new Map(stored.map(({ rootId, groupId }) => [rootId, groupId]))
  for (const group of groups) {
    const inside = byGroup.get(group.id) ?? []
    expectConsistentGroup(group, inside)
    for (const letter of inside) {
      expect(letter.queue).toBe(group.queue)
      // A person can merge groups with different causes.
      if (ownGroups.get(letter.rootId) !== group.id) continue
      expect(causesOf(letter), `the cause of ${letter.rootId}`).toContainEqual(causes(group))
    }
    byGroup.delete(group.id)
  }
  expect([...byGroup.keys()], 'groups of letters that do not exist').toEqual([])
}

/** The letters with the groups in which they are shown. */
async function withShownGroups(storage: Storage, letters: readonly Item[]): Promise<Item[]> {
  const labels = await storage.readGroupLabels(letters.flatMap(({ groupId }) => groupId ?? []))
  const shown = new Map(labels.map(({ id, shownAs }) => [id, shownAs]))
  return letters.map((letter) => ({ ...letter, groupId: shown.get(letter.groupId ?? -1) ?? null }))
}

/** All groups, with or without letters. */
export async function listAllGroups(storage: Storage): Promise<GroupFacts[]> {
  const groups: GroupFacts[] = []
  const countMax = 1_000
  for (;;) {
    const last = groups.at(-1)
    const after = last === undefined ? {} : { after: { count: last.count, id: last.id } }
    const page = await storage.listGroups({ filter: {}, isEmptyToo: true, countMax, ...after })
    groups.push(...page)
    if (page.length < countMax) return groups
  }
}

function expectFactsOfLettersOnly(item: Item): void {
  const has = {
    group: item.groupId !== null,
    facts: item.letter !== null,
    deadLetteredAt: item.deadLetteredAt !== null,
  }
  if (isLetter(item)) {
    expect(has, `letter ${item.rootId}`).toEqual({ group: true, facts: true, deadLetteredAt: true })
  } else expect(has, `item ${item.id}`).toMatchObject({ group: false, facts: false })
}

/**
 * A letter in redrive has exactly one live item with the number of the redrive, or one record in Kafka; other
 * letters have none.
 */
async function expectOneRedriveEach(
  storage: Storage,
  letters: readonly Item[],
  items: readonly Item[],
): Promise<void> {
  const alive = items.filter((item) => item.letterId !== null && ['waiting', 'leased'].includes(item.state))
  for (const letter of letters) {
    const [newest, ...earlier] = letter.letter?.redrives ?? []
    expect(
      earlier.filter((record) => record.outcome === null || record.endedAt === null),
      `redrives of ${letter.rootId} that should have ended`,
    ).toEqual([])
    expect(isRedriving(letter), `whether a redrive of ${letter.rootId} is in progress`).toBe(
      newest?.outcome === null,
    )
    if (!isRedriving(letter) || newest?.target.kind !== 'queue') continue
    if (await isInKafka(storage, letter, newest.number)) continue
    const sent = alive.filter((item) => item.letterId === letter.rootId && item.retryCount === newest.number)
    expect(
      sent.map(({ queue, partition }) => ({ queue, partition })),
      `the redrive of ${letter.rootId}`,
    ).toEqual([{ queue: newest.target.name, partition: newest.target.partition }])
  }
}

async function isInKafka(storage: Storage, { rootId, origin }: Item, number: number): Promise<boolean> {
  if (origin?.cluster == null) return false
  const query = { cluster: origin.cluster, by: 'letter', letterIds: [rootId], countMax: 1 } as const
  return (await storage.listKafkaReplays(query)).some((replay) => replay.number === number)
}

function expectConsistentGroup(group: GroupFacts, inside: readonly Item[]): void {
  const states: Record<string, number> = {}
  for (const letter of inside) states[toGauge(letter)] = (states[toGauge(letter)] ?? 0) + 1
  expect({ count: group.count, states: nonZero(group.states) }, `group ${group.id}`).toEqual({
    count: inside.length,
    states,
  })
  const newest =
    inside.length === 0 ? null : Math.max(...inside.map(({ deadLetteredAt }) => deadLetteredAt ?? 0))
  expect(group.lastSeenAt, `last seen of group ${group.id}`).toBeGreaterThanOrEqual(group.firstSeenAt)
  const samples = inside.filter((letter) => letter.deadLetteredAt === newest).map((letter) => letter.rootId)
  expect(inside.length === 0 ? [null] : samples, `sample of group ${group.id}`).toContain(group.sampleId)
}

function recount(letters: readonly Item[]): LetterCount[] {
  const sums = new Map<string, LetterCount>()
  for (const letter of letters) {
    const retryCount = Math.min(letter.retryCount, redrivesCounted)
    const of = { queue: letter.queue, state: toGauge(letter), group: letter.groupId ?? -1, retryCount }
    const key = JSON.stringify(of)
    sums.set(key, { ...of, count: (sums.get(key)?.count ?? 0) + 1 })
  }
  return sortCounts([...sums.values()])
}

/** Sorted, because the store returns counts in any order. */
export function sortCounts(counts: readonly LetterCount[]): LetterCount[] {
  const key = (count: LetterCount): string => JSON.stringify(Object.entries(count).toSorted())
  return counts.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}

function causesOf(letter: Item): object[] {
  const cause = toCause(letter.failure, letter.origin ?? { name: '' })
  const ofClass = foldCause(cause, 5_000) as Cause
  const ofReason = foldCause(ofClass, 10_000) as Cause
  return [cause, ofClass, ofReason].map(causes)
}

/** The fields that all letters of a group have in common. Letters with other messages may join a group. */
function causes({ origin, errorCode, errorClass }: Pick<GroupFacts, 'origin' | 'errorCode' | 'errorClass'>) {
  return { origin, errorCode, errorClass }
}

function nonZero(states: GroupFacts['states']): Record<string, number> {
  return Object.fromEntries(Object.entries(states).filter(([, count]) => count !== 0))
}
