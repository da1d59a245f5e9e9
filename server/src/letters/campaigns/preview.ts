/** What a campaign would do now. Reads only, and no longer than a moment. */
import { type Instant, usPerSecond } from '../../core/instant.ts'
import type { Item } from '../../core/item.ts'
import { whyNotDiscarded, whyNotRedriven } from '../../core/letter.ts'
import type { Queue } from '../../core/queue.ts'
import type { LetterCount, LetterFilter, ListedLetter } from '../../storage/contract/letters.ts'
import type { Storage } from '../../storage/contract/storage.ts'
import type { CampaignPreview, CampaignSpec } from '../letters.ts'
import { areCountsExact, countedPart, isCounted } from '../search.ts'
import { isDeadQueue } from './dead-queue.ts'
import { selectedBy } from './spec.ts'

const sampleMax = 10
const searchMs = 1_000
const stepMax = 1_000
const lookMax = 20_000
const namedPerRead = 200
const queuesMax = 10_000
/** A group that got a letter so shortly ago is still failing. */
const stillArrivingUs = 10 * 60 * usPerSecond
const groupsLookedAt = 20

type Found = Omit<CampaignPreview, 'warnings'> &
  Readonly<{ queues: ReadonlySet<string>; groupIds: ReadonlySet<number> }>

export async function previewCampaign(
  storage: Storage,
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
      ? await lookAtNamed(storage, spec, selection.letterIds, queues, warnings)
      : await lookAtFilter(storage, spec, selectedBy(spec, selection.filter), elapsedMs)
  if (!('letterIds' in selection)) {
    const { filter } = selection
    if (filter.states === undefined) warnings.push(...(await leftOutWarnings(storage, spec, filter)))
    else warnings.push(...skippedWarnings(spec, found))
    warnings.push(...(await exhaustedWarnings(storage, spec, filter, queues)))
  }
  if (spec.action === 'redrive') warnings.push(...(await targetWarnings(storage, found, queues)))
  warnings.push(...classWarnings(spec, found, queues), ...(await arrivalWarnings(storage, found, now)))
  if (found.count === 0) warnings.unshift('nothing matches: the campaign would end at once')
  const { queues: _, groupIds: __, ...shown } = found
  return { ...shown, warnings }
}

async function lookAtNamed(
  storage: Storage,
  spec: CampaignSpec,
  letterIds: readonly string[],
  queues: ReadonlyMap<string, Queue>,
  warnings: string[],
): Promise<Found> {
  const seen = new Seen(spec)
  const ids = [...new Set(letterIds)]
  const excluded = new Map<string, number>()
  for (let at = 0; at < ids.length; at += namedPerRead) {
    const asked = ids.slice(at, at + namedPerRead)
    const letters = await storage.getLetters(asked, 'head')
    seen.add(letters)
    if (letters.length < asked.length) {
      const live = new Set(letters.map(({ rootId }) => rootId))
      const gone = asked.filter((id) => !live.has(id))
      const archived = (await storage.getArchivedLetters(gone)).length
      if (archived > 0) add(excluded, 'archived', archived)
      if (gone.length > archived) add(excluded, 'missing', gone.length - archived)
    }
    for (const letter of letters) {
      const rules = { isDeadAllowed: spec.isDeadAllowed, isCapped: !spec.isDeadAllowed }
      const policy = queues.get(letter.queue)?.redrive
      const why =
        spec.action === 'discard' || policy === undefined
          ? whyNotDiscarded(letter)
          : whyNotRedriven(letter, rules, policy)
      if (why !== undefined) add(excluded, why, 1)
    }
  }
  for (const [why, count] of excluded) warnings.push(`${count} of the letters named will be skipped: ${why}`)
  return { ...seen.found(), count: ids.length, isExact: true, looked: ids.length }
}

async function lookAtFilter(
  storage: Storage,
  spec: CampaignSpec,
  filter: LetterFilter,
  elapsedMs: () => number,
): Promise<Found> {
  const seen = new Seen(spec)
  if (isCounted(filter) && (await areCountsExact(storage, filter))) {
    const page = await storage.listLetters({
      filter,
      order: 'diedAt',
      isDescending: false,
      countMax: sampleMax,
      lookMax,
      bytes: 'head',
    })
    seen.add(page.letters)
    const rows = await storage.countLetters({ filter, by: ['queue', 'state', 'origin', 'group'] })
    return { ...seen.found(), ...sumsOf(spec, rows), isExact: true, looked: page.looked }
  }
  const deadline = elapsedMs() + searchMs
  let looked = 0
  let isFirst = true
  for (let after: { value: number; id: string } | undefined; ; ) {
    const page = await storage.listLetters({
      filter,
      order: 'diedAt',
      isDescending: false,
      countMax: isFirst ? sampleMax : stepMax,
      lookMax,
      // The sample is shown with the beginning of its bytes; what is only counted needs none.
      bytes: isFirst ? 'head' : 'none',
      ...(after !== undefined && { after }),
    })
    seen.add(page.letters)
    looked += page.looked
    isFirst = seen.isSampleFull ? false : isFirst
    if (page.next === null) return { ...seen.found(), isExact: true, looked }
    if (elapsedMs() >= deadline) return { ...seen.found(), isExact: false, looked }
    after = page.next
  }
}

/** What letters that were looked at say of all of them. */
class Seen {
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
      add(this.#states, stateOf(letter), 1)
      if (isSent(this.#spec, letter.state)) {
        add(this.#targets, this.#spec.target ?? letter.origin?.name ?? '', 1)
      }
      this.#queues.add(letter.queue)
      if (letter.groupId !== null) this.#groupIds.add(letter.groupId)
    }
  }

  found(): Omit<Found, 'isExact' | 'looked'> {
    return {
      count: this.#count,
      sample: this.#sample,
      targets: targetsOf(this.#spec, this.#targets),
      byState: Object.fromEntries(this.#states),
      queues: this.#queues,
      groupIds: this.#groupIds,
    }
  }
}

function stateOf(item: Item): string {
  return item.state === 'waiting' && item.availableAt !== null ? 'scheduled' : item.state
}

function sumsOf(
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
    targets: targetsOf(spec, targets),
    queues: new Set(rows.flatMap(({ queue }) => queue ?? [])),
    groupIds: new Set(rows.flatMap(({ group }) => group ?? [])),
  }
}

function targetsOf(spec: CampaignSpec, targets: ReadonlyMap<string, number>): CampaignPreview['targets'] {
  if (spec.action === 'discard') return []
  return [...targets].map(([queue, count]) => ({ queue, count })).sort((a, b) => b.count - a.count)
}

async function targetWarnings(
  storage: Storage,
  { targets }: Found,
  queues: ReadonlyMap<string, Queue>,
): Promise<readonly string[]> {
  const warnings: string[] = []
  for (const { queue: name, count } of targets) {
    const queue = queues.get(name)
    if (queue === undefined) {
      warnings.push(`there is no queue ${name} here: its ${count} letters will be skipped`)
      continue
    }
    if (await isDeadQueue(storage, queues.values(), name)) {
      warnings.push(`queue ${name} takes dead letters: its ${count} letters will be skipped`)
      continue
    }
    if (queue.isPaused) warnings.push(`queue ${name} is paused: what is sent there waits until it is resumed`)
    const partitions = await storage.counts({ queue: name })
    const waiting = partitions.reduce((sum, each) => sum + each.waiting, 0)
    const isIdle = partitions.every(({ leased }) => leased === 0)
    if (!queue.isPaused && isIdle && waiting > 0) {
      warnings.push(`nobody works on queue ${name} now, and ${waiting} items wait there already`)
    }
  }
  return warnings
}

function classWarnings(
  { action }: CampaignSpec,
  found: Found,
  queues: ReadonlyMap<string, Queue>,
): readonly string[] {
  const financial = [...found.queues].filter((name) => queues.get(name)?.letterClass === 'financial')
  const what = action === 'discard' ? 'giving up' : 'sending again'
  return financial.map(
    (name) => `dead queue ${name} is of class financial: ${what} its letters may move money`,
  )
}

async function arrivalWarnings(storage: Storage, found: Found, now: Instant): Promise<readonly string[]> {
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
    return `group ${id} (${title}) still gets letters, the last one ${minutes} min ago: is the cause mended?`
  })
}

/** What a filter without states leaves out because it cannot, or should not, be sent. */
async function leftOutWarnings(
  storage: Storage,
  spec: CampaignSpec,
  filter: LetterFilter,
): Promise<readonly string[]> {
  if (!isCounted(filter)) return []
  const rows = await storage.countLetters({ filter: countedPart(filter), by: ['state'] })
  const countOf = (wanted: string): number => rows.find(({ state }) => state === wanted)?.count ?? 0
  const warnings: string[] = []
  const [leased, dead] = [countOf('leased'), countOf('dead')]
  if (leased > 0) warnings.push(`${leased} letters that are under way or held by a consumer are left out`)
  if (spec.action === 'discard' || spec.isDeadAllowed) return warnings
  if (dead > 0) warnings.push(`${dead} letters that are DEAD are left out: only a person sends them`)
  return warnings
}

/** What was asked for by its state is in the set, whether it can go or not. */
function skippedWarnings(spec: CampaignSpec, { byState }: Found): readonly string[] {
  return Object.entries(byState).flatMap(([state, count = 0]) =>
    count === 0 || isSent(spec, state) ? [] : `${count} letters that are ${skippedAs[state]}`,
  )
}

const skippedAs: Readonly<Record<string, string>> = {
  leased: 'under way or held by a consumer will be skipped',
  done: 'RESOLVED will be skipped',
  discarded: 'DISCARDED will be skipped',
  dead: 'DEAD will be skipped: include_dead has them sent',
}

/** Whether a letter in this state is sent, or given up. */
function isSent({ action, isDeadAllowed }: CampaignSpec, state: string): boolean {
  if (state === 'dead') return action === 'discard' || isDeadAllowed
  return state === 'waiting' || state === 'scheduled'
}

async function exhaustedWarnings(
  storage: Storage,
  spec: CampaignSpec,
  filter: LetterFilter,
  queues: ReadonlyMap<string, Queue>,
): Promise<readonly string[]> {
  if (spec.action === 'discard' || spec.isDeadAllowed || !isCounted(filter)) return []
  const rows = await storage.countLetters({ filter: countedPart(filter), by: ['queue', 'state', 'redrives'] })
  const capOf = (queue: string): number => queues.get(queue)?.redrive.redrivesMax ?? Number.POSITIVE_INFINITY
  const exhausted = rows.reduce((sum, { state, queue, redrives, count }) => {
    const isWaiting = state === 'waiting' || state === 'scheduled'
    return isWaiting && (redrives ?? 0) >= capOf(queue ?? '') ? sum + count : sum
  }, 0)
  return exhausted === 0 ? [] : [`${exhausted} letters have used up their redrives and will be skipped`]
}

function add(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}
