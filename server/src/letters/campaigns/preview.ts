/** Previews a campaign: what it would do now. Reads only, for about one second at most. */

import { findSourceQueue } from '../../core/dead-letters/letter.ts'
import {
  findDiscardRefusal,
  findRedriveRefusal,
  type LetterRefusal,
} from '../../core/dead-letters/letter-decisions.ts'
import type { LetterId, QueueName } from '../../core/ids/ids.ts'
import { type Item, toListedState } from '../../core/items/item.ts'
import type { Queue } from '../../core/items/queue.ts'
import { findClusterOfDeadQueue, nameReplayQueue } from '../../core/kafka/replay-queues.ts'
import { type Instant, usPerSecond } from '../../core/time/instant.ts'
import { KnownError } from '../../errors.ts'
import type { LetterCount, LetterFilter, ListedLetter } from '../../storage/contract/letters.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import { lettersFirst, searchMsDefault, searchMsLong } from '../../storage/search/pacer.ts'
import { searchLetters } from '../../storage/search/search-letters.ts'
import type { CampaignPreview, CampaignSpec, PreviewOptions } from '../letters.ts'
import { areCountsExact, isCounted, toCountedFilter } from '../search.ts'
import { isDeadQueue } from './dead-queue.ts'
import { completeFilter } from './spec.ts'

const sampleMax = 10
const namedPerRead = 200
const queuesMax = 10_000
/** A group that received a letter within this time is still failing. */
const stillArrivingUs = 10 * 60 * usPerSecond
const groupsLookedAt = 20

/** A target queue without a lease call within this time has no workers. */
const leasedLatelyUs = 5 * 60 * usPerSecond

type Found = Omit<CampaignPreview, 'warnings'> &
  Readonly<{
    queues: ReadonlySet<string>
    groupIds: ReadonlySet<number>
    /** The numbers of letters that are sent, by the queue that they came from. */
    origins: ReadonlyMap<string, number>
  }>

export type PreviewParts = Readonly<{
  storage: StoreReads
  now: Instant
  /** When a worker last asked any server for items of the queue; null: none ever did. */
  readLastLeaseCallAt: (queue: QueueName) => Promise<Instant | null>
}>

export async function previewCampaign(
  parts: PreviewParts,
  spec: CampaignSpec,
  { isCountedExactly = false, signal }: PreviewOptions = {},
  elapsedMs: () => number = () => performance.now(),
): Promise<CampaignPreview> {
  const { selection } = spec
  const { storage, now } = parts
  const queues = new Map(
    (await storage.listQueues({ countMax: queuesMax })).map((queue) => [queue.name, queue]),
  )
  const warnings: string[] = []
  const msMax = isCountedExactly ? Number.POSITIVE_INFINITY : searchMsDefault
  const search = { msMax, elapsedMs, ...(signal !== undefined && { signal }) }
  const found =
    'letterIds' in selection
      ? await examineNamed(storage, spec, selection.letterIds, queues, warnings)
      : await examineFilter(storage, spec, completeFilter(spec, selection.filter), queues, search)
  if (!('letterIds' in selection)) {
    const { filter } = selection
    if (filter.states === undefined) warnings.push(...(await warnAboutLeftOut(storage, spec, filter)))
    else warnings.push(...warnAboutSkipped(spec, found))
    warnings.push(...(await warnAboutExhausted(storage, spec, filter, queues)))
  }
  if (spec.action === 'redrive') {
    warnings.push(...warnAboutOrigins(spec, found), ...(await warnAboutTargets(parts, found, queues)))
  }
  warnings.push(...warnAboutClass(spec, found, queues), ...(await warnAboutArrivals(storage, found, now)))
  if (found.count === 0) warnings.unshift('no letter matches: the campaign would end immediately')
  if (!found.isExact) warnings.unshift(describeInexact(found))
  const { queues: _, groupIds: __, origins: ___, ...shown } = found
  return { ...shown, warnings }
}

function describeInexact({ count, examinedCount }: Found): string {
  return (
    `the count is not exact: at least ${count} letters match. The search stopped after ${examinedCount} letters; set ` +
    'count_exactly to count all of them'
  )
}

/** Rejects with SELECTION_CHANGED if the selection has not the number of letters that the caller expects. */
export async function checkExpectedCount(storage: StoreReads, spec: CampaignSpec): Promise<void> {
  const { expectedCount, selection } = spec
  if (expectedCount === null) return
  // If the time is not enough, only the frozen set is compared.
  const search = { msMax: searchMsLong, elapsedMs: () => performance.now() }
  const { count, isExact } =
    'letterIds' in selection
      ? { count: selection.letterIds.length, isExact: true }
      : await examineFilter(storage, spec, completeFilter(spec, selection.filter), new Map(), search)
  if (count === expectedCount || (!isExact && count < expectedCount)) return
  throw createSelectionChangedError(count, expectedCount, isExact)
}

export function createSelectionChangedError(
  count: number,
  expectedCount: number,
  isExact = true,
): KnownError {
  const selected = `${isExact ? '' : 'at least '}${count}`
  return new KnownError(
    'SELECTION_CHANGED',
    `the selection has ${selected} letters; expected_count is ${expectedCount}`,
  )
}

async function examineNamed(
  storage: StoreReads,
  spec: CampaignSpec,
  letterIds: readonly LetterId[],
  queues: ReadonlyMap<string, Queue>,
  warnings: string[],
): Promise<Found> {
  const examined = new ExaminedLetters(spec)
  const ids = [...new Set(letterIds)]
  const skipped = new Map<string, number>()
  for (let at = 0; at < ids.length; at += namedPerRead) {
    const asked = ids.slice(at, at + namedPerRead)
    const letters = await storage.getLetters(asked, 'head')
    examined.add(letters)
    await countNotLive(storage, asked, letters, skipped)
    for (const letter of letters) {
      const refusal = findRefusal(spec, letter, queues.get(letter.queue))
      if (refusal !== undefined) add(skipped, refusal, 1)
    }
  }
  for (const [refusal, count] of skipped)
    warnings.push(`${count} of the letters named will be skipped: ${refusal}`)
  return { ...examined.summarize(), count: ids.length, isExact: true, examinedCount: ids.length }
}

/** Counts named letters that are archived or missing. */
async function countNotLive(
  storage: StoreReads,
  asked: readonly string[],
  letters: readonly Item[],
  skipped: Map<string, number>,
): Promise<void> {
  if (letters.length === asked.length) return
  const live = new Set(letters.map(({ rootId }) => rootId))
  const gone = asked.filter((id) => !live.has(id))
  const archived = (await storage.readPayloadSizes(gone, 'archive')).length
  if (archived > 0) add(skipped, 'archived', archived)
  if (gone.length > archived) add(skipped, 'missing', gone.length - archived)
}

function findRefusal(spec: CampaignSpec, letter: Item, queue: Queue | undefined): LetterRefusal | undefined {
  if (spec.action === 'discard' || queue === undefined) return findDiscardRefusal(letter)
  const rules = { isDeadAllowed: spec.isDeadAllowed, isCapped: !spec.isDeadAllowed }
  return findRedriveRefusal(letter, rules, queue.redrive)
}

type SearchLimits = Readonly<{ msMax: number; elapsedMs: () => number; signal?: AbortSignal }>

async function examineFilter(
  storage: StoreReads,
  spec: CampaignSpec,
  filter: LetterFilter,
  queues: ReadonlyMap<string, Queue>,
  search: SearchLimits,
): Promise<Found> {
  if (!isCounted(filter) || !(await areCountsExact(storage, filter))) {
    return examineAll(storage, spec, filter, search)
  }
  const rows = await storage.countLetters({ filter, by: ['queue', 'state', 'origin', 'group'] })
  const counted = sumCounts(spec, rows, queues)
  const { limit } = spec
  if (limit !== null && counted.count > limit) {
    // The counts know the number, but not which letters are the first.
    return { ...(await examineAll(storage, spec, filter, search)), count: limit, isExact: true }
  }
  const seen = new ExaminedLetters(spec)
  const { found, examinedCount } = await searchLetters(storage, {
    filter,
    order: 'deadLetteredAt',
    isDescending: false,
    countMax: sampleMax,
    bytes: 'head',
  })
  seen.add(found.map(({ item }) => item))
  return { ...seen.summarize(), ...counted, isExact: true, examinedCount }
}

async function examineAll(
  storage: StoreReads,
  spec: CampaignSpec,
  filter: LetterFilter,
  { msMax, elapsedMs, signal }: SearchLimits,
): Promise<Found> {
  const seen = new ExaminedLetters(spec)
  const countMax = spec.limit ?? Number.POSITIVE_INFINITY
  const deadline = elapsedMs() + msMax
  let examinedCount = 0
  for (let after: { value: number; id: string } | undefined; ; ) {
    signal?.throwIfAborted()
    const isSampled = !seen.isSampleFull
    const page = await searchLetters(
      storage,
      {
        filter,
        order: 'deadLetteredAt',
        isDescending: false,
        countMax: Math.min(isSampled ? sampleMax : lettersFirst, countMax - seen.count),
        // The sample shows the beginning of each payload; letters that are only counted need no bytes.
        bytes: isSampled ? 'head' : 'none',
        ...(after !== undefined && { after }),
      },
      { msMax: Math.min(deadline - elapsedMs(), searchMsDefault), elapsedMs },
    )
    seen.add(page.found.map(({ item }) => item))
    examinedCount += page.examinedCount
    if (page.next === null || seen.count >= countMax)
      return { ...seen.summarize(), isExact: true, examinedCount }
    if (elapsedMs() >= deadline) return { ...seen.summarize(), isExact: false, examinedCount }
    after = page.next
  }
}

/** Summarises the letters that were examined. */
class ExaminedLetters {
  readonly #spec: CampaignSpec
  readonly #sample: ListedLetter[] = []
  #count = 0
  readonly #states = new Map<string, number>()
  readonly #targets = new Map<string, number>()
  readonly #origins = new Map<string, number>()
  readonly #queues = new Set<string>()
  readonly #groupIds = new Set<number>()

  constructor(spec: CampaignSpec) {
    this.#spec = spec
  }

  get count(): number {
    return this.#count
  }

  get isSampleFull(): boolean {
    return this.#sample.length >= sampleMax
  }

  add(letters: readonly ListedLetter[]): void {
    for (const letter of letters) {
      if (!this.isSampleFull) this.#sample.push(letter)
      this.#count++
      add(this.#states, toListedState(letter), 1)
      if (isSent(this.#spec, letter.state)) {
        add(
          this.#targets,
          this.#spec.target ?? findSourceQueue(letter.origin) ?? letter.origin?.name ?? '',
          1,
        )
        add(this.#origins, letter.origin?.name ?? '', 1)
      }
      this.#queues.add(letter.queue)
      if (letter.groupId !== null) this.#groupIds.add(letter.groupId)
    }
  }

  summarize(): Omit<Found, 'isExact' | 'examinedCount'> {
    return {
      count: this.#count,
      sample: this.#sample,
      targets: sortTargets(this.#spec, this.#targets),
      byState: Object.fromEntries(this.#states),
      origins: this.#origins,
      queues: this.#queues,
      groupIds: this.#groupIds,
    }
  }
}

function sumCounts(
  spec: CampaignSpec,
  rows: readonly LetterCount[],
  deadQueues: ReadonlyMap<string, Queue>,
): Pick<Found, 'count' | 'byState' | 'targets' | 'origins' | 'queues' | 'groupIds'> {
  const states = new Map<string, number>()
  const origins = new Map<string, number>()
  const targets = new Map<string, number>()
  let count = 0
  for (const row of rows) {
    count += row.count
    add(states, row.state ?? '', row.count)
    if (!isSent(spec, row.state ?? '')) continue
    add(targets, spec.target ?? findTarget(row, deadQueues), row.count)
    add(origins, row.origin ?? '', row.count)
  }
  return {
    count,
    byState: Object.fromEntries(states),
    targets: sortTargets(spec, targets),
    origins,
    queues: new Set(rows.flatMap(({ queue }) => queue ?? [])),
    groupIds: new Set(rows.flatMap(({ group }) => group ?? [])),
  }
}

/**
 * Letters of a dead-letter topic go to the queue of its cluster, other letters to the queue that they came
 * from.
 */
function findTarget({ queue, origin }: LetterCount, deadQueues: ReadonlyMap<string, Queue>): string {
  const deadQueue = deadQueues.get(queue ?? '')
  const cluster = deadQueue === undefined ? null : findClusterOfDeadQueue(deadQueue)
  return cluster === null ? (origin ?? '') : nameReplayQueue(cluster, 'default')
}

function sortTargets(spec: CampaignSpec, targets: ReadonlyMap<string, number>): CampaignPreview['targets'] {
  if (spec.action === 'discard') return []
  return [...targets].map(([queue, count]) => ({ queue, count })).sort((a, b) => b.count - a.count)
}

/** Warns about letters that are sent to a queue that they did not come from. */
function warnAboutOrigins({ target }: CampaignSpec, { origins }: Found): readonly string[] {
  if (target === null) return []
  const others = [...origins].filter(([origin]) => origin !== target).sort((a, b) => b[1] - a[1])
  if (others.length === 0) return []
  const count = others.reduce((sum, [, each]) => sum + each, 0)
  const names = others.slice(0, namesShown).map(([origin, each]) => `${origin} (${each})`)
  const more = others.length > namesShown ? ` and ${others.length - namesShown} more` : ''
  return [`${count} letters do not come from the target ${target}, but from ${names.join(', ')}${more}`]
}
const namesShown = 5

async function warnAboutTargets(
  parts: PreviewParts,
  { targets }: Found,
  queues: ReadonlyMap<string, Queue>,
): Promise<readonly string[]> {
  const { storage } = parts
  const warnings: string[] = []
  for (const { queue: name, count } of targets) {
    const queue = queues.get(name)
    if (queue === undefined) {
      warnings.push(`queue ${name} does not exist: its ${count} letters will be skipped`)
      continue
    }
    if (await isDeadQueue(storage, queues.values(), name)) {
      warnings.push(`queue ${name} is a dead queue: its ${count} letters will be skipped`)
      continue
    }
    if (queue.isPaused) {
      warnings.push(`queue ${name} is paused: letters that are sent there wait until it is resumed`)
      continue
    }
    const idle = await describeIdle(parts, name)
    if (idle !== undefined) warnings.push(idle)
  }
  return warnings
}

/** Why letters that are sent to the queue may wait: nobody leases from it. Undefined: somebody does. */
export async function describeIdle(
  { storage, now, readLastLeaseCallAt }: PreviewParts,
  queue: QueueName,
): Promise<string | undefined> {
  const partitions = await storage.readCounts({ queue })
  if (partitions.some(({ leased }) => leased > 0)) return undefined
  const waiting = partitions.reduce((sum, each) => sum + each.waiting, 0)
  const last = await readLastLeaseCallAt(queue)
  if (last !== null && now - last < leasedLatelyUs) return undefined
  const asked =
    last === null
      ? 'none ever asked for items'
      : `none asked for items for ${Math.floor((now - last) / (60 * usPerSecond))} min`
  const already = waiting === 0 ? '' : `, and ${waiting} items are already waiting in it`
  return `queue ${queue} has no active workers: ${asked}${already}`
}

function warnAboutClass(
  { action }: CampaignSpec,
  found: Found,
  queues: ReadonlyMap<string, Queue>,
): readonly string[] {
  const financial = [...found.queues].filter((name) => queues.get(name)?.letterClass === 'financial')
  const what = action === 'discard' ? 'discarding' : 'redriving'
  return financial.map(
    (name) => `dead queue ${name} is of class financial: ${what} its letters may move money`,
  )
}

async function warnAboutArrivals(
  storage: StoreReads,
  found: Found,
  now: Instant,
): Promise<readonly string[]> {
  const groupIds = [...found.groupIds].slice(0, groupsLookedAt)
  if (groupIds.length === 0) return []
  const groups = await storage.listGroups({
    filter: { groupIds },
    countMax: groupsLookedAt,
    isEmptyToo: false,
  })
  return groups.flatMap(({ id, title, lastSeenAt }) => {
    if (lastSeenAt < now - stillArrivingUs) return []
    const minutes = Math.floor(Math.max(now - lastSeenAt, 0) / (60 * usPerSecond))
    // Letters that were captured without an error message have an empty title.
    const name = title === '' ? `group ${id}` : `group ${id} (${title})`
    return `${name} still receives letters, the last one ${minutes} min ago: is the cause fixed?`
  })
}

/** Warns about letters that a filter without states leaves out, because they cannot or should not be sent. */
async function warnAboutLeftOut(
  storage: StoreReads,
  spec: CampaignSpec,
  filter: LetterFilter,
): Promise<readonly string[]> {
  if (!isCounted(filter)) return []
  const rows = await storage.countLetters({ filter: toCountedFilter(filter), by: ['state'] })
  const findCount = (wanted: string): number => rows.find(({ state }) => state === wanted)?.count ?? 0
  const warnings: string[] = []
  const [leased, dead] = [findCount('leased'), findCount('dead')]
  if (leased > 0)
    warnings.push(`${leased} letters are left out because a redrive is in progress or a consumer holds them`)
  if (spec.action === 'discard' || spec.isDeadAllowed) return warnings
  if (dead > 0) warnings.push(`${dead} DEAD letters are left out; set include_dead to send them`)
  return warnings
}

/** Warns about letters that the filter selects by state although they cannot be sent. */
function warnAboutSkipped(spec: CampaignSpec, { byState }: Found): readonly string[] {
  return Object.entries(byState).flatMap(([state, count = 0]) =>
    count === 0 || isSent(spec, state) ? [] : `${count} ${skippedAs[state]}`,
  )
}

const skippedAs: Readonly<Record<string, string>> = {
  leased: 'letters will be skipped because a redrive is in progress or a consumer holds them',
  done: 'RESOLVED letters will be skipped',
  discarded: 'DISCARDED letters will be skipped',
  dead: 'DEAD letters will be skipped; set include_dead to send them',
}

/** True if a letter in this state is sent or discarded. */
function isSent({ action, isDeadAllowed }: CampaignSpec, state: string): boolean {
  if (state === 'dead') return action === 'discard' || isDeadAllowed
  return state === 'waiting' || state === 'scheduled'
}

async function warnAboutExhausted(
  storage: StoreReads,
  spec: CampaignSpec,
  filter: LetterFilter,
  queues: ReadonlyMap<string, Queue>,
): Promise<readonly string[]> {
  if (spec.action === 'discard' || spec.isDeadAllowed || !isCounted(filter)) return []
  const rows = await storage.countLetters({
    filter: toCountedFilter(filter),
    by: ['queue', 'state', 'retryCount'],
  })
  const findCap = (queue: QueueName): number =>
    queues.get(queue)?.redrive.redrivesMax ?? Number.POSITIVE_INFINITY
  const exhausted = rows.reduce((sum, { state, queue, retryCount, count }) => {
    const isWaiting = state === 'waiting' || state === 'scheduled'
    return isWaiting && (retryCount ?? 0) >= findCap(queue ?? '') ? sum + count : sum
  }, 0)
  return exhausted === 0 ? [] : [`${exhausted} letters have used up their redrives and will be skipped`]
}

function add(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}
