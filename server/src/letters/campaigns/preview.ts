/** Previews a campaign: what it would do now. Reads only, for about one second at most. */
import type { LetterId, QueueName } from '../../core/ids.ts'
import { type Instant, usPerSecond } from '../../core/instant.ts'
import { type Item, listedState } from '../../core/item.ts'
import { findDiscardRefusal, findRedriveRefusal, type LetterRefusal } from '../../core/letter-decisions.ts'
import type { Queue } from '../../core/queue.ts'
import type { LetterCount, LetterFilter, ListedLetter } from '../../storage/contract/letters.ts'
import type { StoreReads } from '../../storage/contract/storage.ts'
import type { CampaignPreview, CampaignSpec } from '../letters.ts'
import { areCountsExact, countedPart, isCounted } from '../search.ts'
import { isDeadQueue } from './dead-queue.ts'
import { completeFilter } from './spec.ts'

const sampleMax = 10
const searchMs = 1_000
const stepMax = 1_000
const examinedMax = 20_000
const namedPerRead = 200
const queuesMax = 10_000
/** A group that received a letter within this time is still failing. */
const stillArrivingUs = 10 * 60 * usPerSecond
const groupsLookedAt = 20

type Found = Omit<CampaignPreview, 'warnings'> &
  Readonly<{ queues: ReadonlySet<string>; groupIds: ReadonlySet<number> }>

export async function previewCampaign(
  storage: StoreReads,
  spec: CampaignSpec,
  now: Instant,
  elapsedMs: () => number = () => performance.now(),
): Promise<CampaignPreview> {
  const { selection } = spec
  const queues = new Map(
    (await storage.listQueues({ countMax: queuesMax })).map((queue) => [queue.name, queue]),
  )
  const warnings: string[] = []
  const found =
    'letterIds' in selection
      ? await examineNamed(storage, spec, selection.letterIds, queues, warnings)
      : await examineFilter(storage, spec, completeFilter(spec, selection.filter), elapsedMs)
  if (!('letterIds' in selection)) {
    const { filter } = selection
    if (filter.states === undefined) warnings.push(...(await warnAboutLeftOut(storage, spec, filter)))
    else warnings.push(...warnAboutSkipped(spec, found))
    warnings.push(...(await warnAboutExhausted(storage, spec, filter, queues)))
  }
  if (spec.action === 'redrive') warnings.push(...(await warnAboutTargets(storage, found, queues)))
  warnings.push(...warnAboutClass(spec, found, queues), ...(await warnAboutArrivals(storage, found, now)))
  if (found.count === 0) warnings.unshift('no letter matches: the campaign would end immediately')
  const { queues: _, groupIds: __, ...shown } = found
  return { ...shown, warnings }
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
  return { ...examined.found(), count: ids.length, isExact: true, examinedCount: ids.length }
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

async function examineFilter(
  storage: StoreReads,
  spec: CampaignSpec,
  filter: LetterFilter,
  elapsedMs: () => number,
): Promise<Found> {
  const seen = new ExaminedLetters(spec)
  if (isCounted(filter) && (await areCountsExact(storage, filter))) {
    const page = await storage.listLetters({
      filter,
      order: 'diedAt',
      isDescending: false,
      countMax: sampleMax,
      examinedMax,
      bytes: 'head',
    })
    seen.add(page.letters)
    const rows = await storage.countLetters({ filter, by: ['queue', 'state', 'origin', 'group'] })
    return { ...seen.found(), ...sumCounts(spec, rows), isExact: true, examinedCount: page.examinedCount }
  }
  const deadline = elapsedMs() + searchMs
  let examinedCount = 0
  let isFirst = true
  for (let after: { value: number; id: string } | undefined; ; ) {
    const page = await storage.listLetters({
      filter,
      order: 'diedAt',
      isDescending: false,
      countMax: isFirst ? sampleMax : stepMax,
      examinedMax,
      // The sample shows the beginning of each payload; letters that are only counted need no bytes.
      bytes: isFirst ? 'head' : 'none',
      ...(after !== undefined && { after }),
    })
    seen.add(page.letters)
    examinedCount += page.examinedCount
    isFirst = seen.isSampleFull ? false : isFirst
    if (page.next === null) return { ...seen.found(), isExact: true, examinedCount }
    if (elapsedMs() >= deadline) return { ...seen.found(), isExact: false, examinedCount }
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
  readonly #queues = new Set<string>()
  readonly #groupIds = new Set<number>()

  constructor(spec: CampaignSpec) {
    this.#spec = spec
  }

  get isSampleFull(): boolean {
    return this.#sample.length >= sampleMax
  }

  add(letters: readonly ListedLetter[]): void {
    for (const letter of letters) {
      if (!this.isSampleFull) this.#sample.push(letter)
      this.#count++
      add(this.#states, listedState(letter), 1)
      if (isSent(this.#spec, letter.state)) {
        add(this.#targets, this.#spec.target ?? letter.origin?.name ?? '', 1)
      }
      this.#queues.add(letter.queue)
      if (letter.groupId !== null) this.#groupIds.add(letter.groupId)
    }
  }

  found(): Omit<Found, 'isExact' | 'examinedCount'> {
    return {
      count: this.#count,
      sample: this.#sample,
      targets: sortTargets(this.#spec, this.#targets),
      byState: Object.fromEntries(this.#states),
      queues: this.#queues,
      groupIds: this.#groupIds,
    }
  }
}

function sumCounts(
  spec: CampaignSpec,
  rows: readonly LetterCount[],
): Pick<Found, 'count' | 'byState' | 'targets' | 'queues' | 'groupIds'> {
  const states = new Map<string, number>()
  const targets = new Map<string, number>()
  let count = 0
  for (const row of rows) {
    count += row.count
    add(states, row.state ?? '', row.count)
    if (isSent(spec, row.state ?? '')) add(targets, spec.target ?? row.origin ?? '', row.count)
  }
  return {
    count,
    byState: Object.fromEntries(states),
    targets: sortTargets(spec, targets),
    queues: new Set(rows.flatMap(({ queue }) => queue ?? [])),
    groupIds: new Set(rows.flatMap(({ group }) => group ?? [])),
  }
}

function sortTargets(spec: CampaignSpec, targets: ReadonlyMap<string, number>): CampaignPreview['targets'] {
  if (spec.action === 'discard') return []
  return [...targets].map(([queue, count]) => ({ queue, count })).sort((a, b) => b.count - a.count)
}

async function warnAboutTargets(
  storage: StoreReads,
  { targets }: Found,
  queues: ReadonlyMap<string, Queue>,
): Promise<readonly string[]> {
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
    if (queue.isPaused)
      warnings.push(`queue ${name} is paused: letters that are sent there wait until it is resumed`)
    const partitions = await storage.counts({ queue: name })
    const waiting = partitions.reduce((sum, each) => sum + each.waiting, 0)
    const isIdle = partitions.every(({ leased }) => leased === 0)
    if (!queue.isPaused && isIdle && waiting > 0) {
      warnings.push(`queue ${name} has no active workers, and ${waiting} items are already waiting in it`)
    }
  }
  return warnings
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
    return `group ${id} (${title}) still receives letters, the last one ${minutes} min ago: is the cause fixed?`
  })
}

/** Warns about letters that a filter without states leaves out, because they cannot or should not be sent. */
async function warnAboutLeftOut(
  storage: StoreReads,
  spec: CampaignSpec,
  filter: LetterFilter,
): Promise<readonly string[]> {
  if (!isCounted(filter)) return []
  const rows = await storage.countLetters({ filter: countedPart(filter), by: ['state'] })
  const countOf = (wanted: string): number => rows.find(({ state }) => state === wanted)?.count ?? 0
  const warnings: string[] = []
  const [leased, dead] = [countOf('leased'), countOf('dead')]
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
  const rows = await storage.countLetters({ filter: countedPart(filter), by: ['queue', 'state', 'redrives'] })
  const capOf = (queue: QueueName): number =>
    queues.get(queue)?.redrive.redrivesMax ?? Number.POSITIVE_INFINITY
  const exhausted = rows.reduce((sum, { state, queue, redrives, count }) => {
    const isWaiting = state === 'waiting' || state === 'scheduled'
    return isWaiting && (redrives ?? 0) >= capOf(queue ?? '') ? sum + count : sum
  }, 0)
  return exhausted === 0 ? [] : [`${exhausted} letters have used up their redrives and will be skipped`]
}

function add(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}
