import { describe, expect, it } from 'vitest'
import { repeats, reproduceHint, testSeed } from '../random-test.ts'
import type { LabelledFailure } from './cause.ts'
import { createCorpus } from './create-corpus.ts'
import { groupInBatches, groupLikeStore, toFailureCause } from './group-like-store.ts'
import { type Scores, scoreGroups } from './score-groups.ts'
import { createValues } from './values.ts'

const rounds = Array.from({ length: repeats(2) }, (_, run) => testSeed(run))

describe('generated failures in eight languages', () => {
  it.each(rounds)('groups are the causes (seed %i)', (seed) => {
    expectGoodGroups(createCorpus(seed), groupLikeStore, seed)
  })

  it.each(rounds)('groups are the causes when the failures arrive in another order (seed %i)', (seed) => {
    expectGoodGroups(createValues(seed).shuffle(createCorpus(seed)), groupLikeStore, seed)
  })

  it('groups are the causes when all failures of a cause arrive together', () => {
    const seed = testSeed()
    const failures = createCorpus(seed).toSorted((a, b) => (a.cause < b.cause ? -1 : 1))
    expectGoodGroups(failures, groupLikeStore, seed)
  })

  it('groups are the causes in batches of any size', () => {
    const failures = createCorpus(testSeed()).slice(0, 5_000)
    const single = toPartition(groupInBatches(failures, 1))
    expect(toPartition(groupLikeStore(failures))).toEqual(single)
    for (const size of [7, 400, 5_000]) {
      const seed = testSeed()
      expectGoodGroups(failures, (each) => groupInBatches(each, size), seed)
    }
  })

  it('titles and slugs contain no data and are not empty, in every script', () => {
    const seed = testSeed()
    for (const failure of createCorpus(seed).slice(0, 4_000)) expectReadable(failure, seed)
  })

  it('a slug contains a URL as a whole or not at all', () => {
    const values = createValues(testSeed())
    for (let round = 0; round < 2_000; round++) {
      const words = Array.from(
        { length: values.number(2, 9) },
        () => `q${values.text('abcdefgh', values.number(2, 14))}z`,
      )
      const [host, ...path] = words
      const before = Array.from({ length: values.number(0, 12) }, () =>
        values.text('klmnop', values.number(1, 9)),
      ).join(' ')
      const message = `${before} https://${host}.example/${path.join('/')}${values.pick([': refused', ' 503', '', ' is gone: now'])}`
      const { slug } = toFailureCause({ cause: '', queue: 'q', errorClass: '', message, stack: '' })
      const found = words.filter((word) => slug.split('_').includes(word))
      expect([0, words.length], `${message}\n${slug}`).toContain(found.length)
    }
  })
})

type Group = (failures: readonly LabelledFailure[]) => readonly number[]

function expectGoodGroups(failures: readonly LabelledFailure[], group: Group, seed: number): void {
  const scores = scoreGroups(
    failures.map(({ cause }) => cause),
    group(failures),
  )
  expect(scores.causes).toBeGreaterThan(450)
  const { accuracy, exactShare, groupsPerCause, confusedShare } = toShares(scores)
  const seen = `${JSON.stringify(scores)}\n${reproduceHint(seed)}`
  expect(accuracy, seen).toBeGreaterThanOrEqual(0.95)
  expect(exactShare, seen).toBeGreaterThanOrEqual(0.95)
  expect(groupsPerCause, seen).toBeLessThanOrEqual(1.2)
  expect(confusedShare, seen).toBeLessThanOrEqual(0.02)
}

function toShares(scores: Scores) {
  return {
    accuracy: scores.accuracy,
    exactShare: scores.exact / scores.causes,
    groupsPerCause: scores.groups / scores.causes,
    confusedShare: scores.confused / scores.families,
  }
}

/** The groups as sets of failures, whatever their ids. */
function toPartition(groups: readonly number[]): number[] {
  const firsts = new Map<number, number>()
  return groups.map((group, index) => {
    const first = firsts.get(group) ?? index
    firsts.set(group, first)
    return first
  })
}

const data = /[0-9a-f]{8}-[0-9a-f]{4}-|[0-9]{7}|@[a-z]+\.example|[0-9]{1,3}(?:\.[0-9]{1,3}){3}/

function expectReadable(failure: LabelledFailure, seed: number): void {
  const { slug, title } = toFailureCause(failure)
  const seen = `${failure.message}\n${title}\n${slug}\n${reproduceHint(seed)}`
  expect(slug, seen).toMatch(/^[\p{L}\p{N}][\p{L}\p{M}\p{N}_]{0,63}$/u)
  // A message without a colon is named by its first word.
  if (!/^unknown/i.test(failure.message)) expect(slug, seen).not.toBe('unknown')
  expect(slug, seen).not.toMatch(/__|_$/)
  expect(title.length, seen).toBeGreaterThan(0)
  expect(title, seen).not.toMatch(data)
}
