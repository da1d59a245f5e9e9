/** Measures the reads of an operator: counts, pages by every filter, searches. */
import type { Instant } from '../../server/src/core/time/instant.ts'
import type { LetterFilter, LetterScan } from '../../server/src/storage/contract/letters.ts'
import type { Storage } from '../../server/src/storage/contract/storage.ts'
import { searchAll, searchLetters } from '../../server/src/storage/search/search-letters.ts'
import { quantile, type Timed } from '../report.ts'
import { createKey, deadQueues, rareValues } from './sample-letters.ts'

export type ReadBench = Readonly<{
  subject: string
  storage: Storage
  now: Instant
  count: number
  calls: number
}>

const pageSize = 50
/** Letters that the export reads at most. */
const exportedMax = 20_000
/** As the export of the API. */
const exportBatch = 500
const pageAimMs = 50
const countAimMs = 5
const searchAimMs = 100
const usPerDay = 24 * 3600 * 1_000_000

export async function measureCounts(bench: ReadBench): Promise<Timed[]> {
  const { storage, now } = bench
  // Counts are fast: with few calls, a single pause of the machine would determine the p99.
  const countBench = { ...bench, calls: 5 * bench.calls }
  return [
    await measureCalls(countBench, 'count by queue and status', countAimMs, () =>
      storage.countLetters({ filter: {}, by: ['queue', 'state'] }),
    ),
    await measureCalls(countBench, 'count by reason slug', countAimMs, () =>
      storage.countLetters({ filter: {}, by: ['slug'] }),
    ),
    await measureCalls(countBench, 'count of one reason in one queue', countAimMs, () =>
      storage.countLetters({ filter: { queues: ['orders-dead'], errorCodes: ['expired'] }, by: ['state'] }),
    ),
    await measureCalls(countBench, 'open letters of the last 24 h', countAimMs, () =>
      storage.countOpenSince(now - usPerDay),
    ),
    await measureCalls(countBench, 'first 50 groups', null, () =>
      storage.listGroups({ filter: {}, countMax: pageSize, isEmptyToo: false }),
    ),
  ]
}

/** Single filters, then combinations: a combination can match far fewer letters than each of its filters. */
async function listFilters(bench: ReadBench): Promise<readonly (readonly [string, LetterFilter])[]> {
  const { storage, now, count } = bench
  const groups = await storage.listGroups({ filter: {}, countMax: 500, isEmptyToo: false })
  const [large] = groups
  const rare = groups.at(-1)
  if (large === undefined || rare === undefined) throw new Error('there are no groups')
  const died = { from: now - 20 * usPerDay, until: now - 10 * usPerDay }
  const queue = deadQueues[1].name
  return [
    ['no filter', {}],
    ['queue', { queues: [queue] }],
    ['status PENDING', { states: ['waiting', 'scheduled'] }],
    ['status RESOLVED', { states: ['done'] }],
    [
      'class',
      { queues: deadQueues.filter((each) => each.letterClass === 'financial').map(({ name }) => name) },
    ],
    ['reason', { errorCodes: ['expired'] }],
    ['largest group', { groupIds: [large.id] }],
    ['smallest group', { groupIds: [rare.id] }],
    ['error class', { errorClasses: [large.errorClass] }],
    ['key', { key: createKey(Math.floor(count / 2)) }],
    ['time', { died }],
    ['retry count', { retryCount: { min: 1 } }],
    ['queue, status', { queues: [queue], states: ['dead'] }],
    ['queue, reason, time', { queues: [queue], errorCodes: ['expired'], died }],
    ['reason, error class', { errorCodes: [rare.errorCode], errorClasses: [rare.errorClass] }],
    ['group, retry count', { groupIds: [large.id], retryCount: { min: 1 } }],
    ['key, status', { key: createKey(Math.floor(count / 3)), states: ['waiting'] }],
    [
      'all together',
      {
        queues: [large.queue],
        states: ['waiting', 'dead'],
        errorCodes: [large.errorCode],
        errorClasses: [large.errorClass],
        groupIds: [large.id],
        retryCount: { max: 0 },
        died,
      },
    ],
  ]
}

export async function measurePages(bench: ReadBench): Promise<Timed[]> {
  const { storage, now } = bench
  const timed: Timed[] = []
  const page = (filter: LetterFilter, value?: Instant): Promise<LetterScan> =>
    searchLetters(storage, {
      filter,
      order: 'deadLetteredAt',
      isDescending: true,
      countMax: pageSize,
      bytes: 'head',
      ...(value !== undefined && { after: { value, id: 'z' } }),
    })
  for (const [name, filter] of await listFilters(bench)) {
    timed.push(await measureCalls(bench, `first page: ${name}`, pageAimMs, () => page(filter)))
    let daysBack = 0
    timed.push(
      await measureCalls(bench, `deep page: ${name}`, pageAimMs, () => {
        // Another depth for each call: one to twenty-eight days back.
        daysBack = (daysBack + 11) % 28
        return page(filter, now - (daysBack + 1) * usPerDay)
      }),
    )
  }
  return timed
}

/** Measures the time until the first result, and until a page is full. */
export async function measureSearches(bench: ReadBench): Promise<Timed[]> {
  const filters: readonly (readonly [string, LetterFilter])[] = [
    ['text in the message', { text: rareValues.text }],
    ['header', { header: rareValues.header }],
    ['JSON path', { json: rareValues.json }],
  ]
  const timed: Timed[] = []
  for (const [name, filter] of filters) {
    timed.push(
      await measureCalls(bench, `first results: ${name}`, searchAimMs, () => search(bench, filter, 1)),
    )
    timed.push(
      await measureCalls(
        bench,
        `page of ${pageSize}: ${name}`,
        null,
        () => search(bench, filter, pageSize),
        4,
      ),
    )
  }
  timed.push({ ...describeLongestStep(bench.subject), aimMs: 1_000 })
  return timed
}

const stepMs = new Map<string, number>()

async function search(
  { storage, subject }: ReadBench,
  filter: LetterFilter,
  countMax: number,
): Promise<void> {
  const timed: Pick<Storage, 'findRanges'> = {
    findRanges: async (query) => {
      const ranges = await storage.findRanges(query)
      return {
        scan: async (bounds) => {
          const began = performance.now()
          const scan = await ranges.scan(bounds)
          stepMs.set(subject, Math.max(stepMs.get(subject) ?? 0, performance.now() - began))
          return scan
        },
      }
    },
  }
  const query = { filter, order: 'deadLetteredAt', isDescending: true, countMax, bytes: 'head' } as const
  const { found } = await searchLetters(timed, query, { msMax: Number.POSITIVE_INFINITY })
  if (found.length === 0) throw new Error('nothing was found')
}

/** Reads whole letters as the export does, and returns the letters per second. */
export async function measureExport({ storage }: ReadBench): Promise<number> {
  const startedMs = performance.now()
  let count = 0
  const query = {
    filter: {},
    order: 'deadLetteredAt',
    isDescending: true,
    countMax: exportBatch,
    bytes: 'all',
  } as const
  for await (const { found } of searchAll(storage, query)) {
    count += found.length
    if (count >= exportedMax) break
  }
  return (count / (performance.now() - startedMs)) * 1_000
}

function describeLongestStep(subject: string): Timed {
  const ms = stepMs.get(subject) ?? 0
  return { subject, operation: 'longest step of a search', calls: 1, p50Ms: ms, p99Ms: ms, aimMs: null }
}

export async function measureCalls(
  { subject, calls }: ReadBench,
  operation: string,
  aimMs: number | null,
  call: () => Promise<unknown>,
  divisor = 1,
): Promise<Timed> {
  // Warm up first: the database plans a statement only once.
  for (let warmUp = 0; warmUp < 5; warmUp++) await call()
  const times: number[] = []
  const count = Math.ceil(calls / divisor)
  for (let done = 0; done < count; done++) {
    const startedAtMs = performance.now()
    await call()
    times.push(performance.now() - startedAtMs)
  }
  times.sort((left, right) => left - right)
  return {
    subject,
    operation,
    calls: count,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    aimMs,
  }
}
