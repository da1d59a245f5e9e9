/** What an operator looks at: counts, pages by every filter, searches. */
import type { Instant } from '../../server/src/core/instant.ts'
import type { LetterFilter, LettersPage } from '../../server/src/storage/contract/letters.ts'
import type { Storage } from '../../server/src/storage/contract/storage.ts'
import { quantile, type Timed } from '../report.ts'
import { deadQueues, keyOf, needle } from './made.ts'

export type Stand = Readonly<{
  subject: string
  storage: Storage
  now: Instant
  count: number
  calls: number
}>

const pageSize = 50
const lookMax = 20_000
const pageAimMs = 50
const countAimMs = 5
const searchAimMs = 100
const usPerDay = 24 * 3600 * 1_000_000

export async function timeCounts(given: Stand): Promise<Timed[]> {
  const { storage, now } = given
  // They are short: with so few calls the one that met a pause would be the figure.
  const stand = { ...given, calls: 5 * given.calls }
  return [
    await time(stand, 'count by queue and status', countAimMs, () =>
      storage.countLetters({ filter: {}, by: ['queue', 'state'] }),
    ),
    await time(stand, 'count by reason slug', countAimMs, () =>
      storage.countLetters({ filter: {}, by: ['slug'] }),
    ),
    await time(stand, 'count of one reason in one queue', countAimMs, () =>
      storage.countLetters({ filter: { queues: ['orders-dead'], reasons: ['expired'] }, by: ['state'] }),
    ),
    await time(stand, 'open letters of the last 24 h', countAimMs, () =>
      storage.countOpenSince(now - usPerDay),
    ),
    await time(stand, 'first 50 groups', null, () =>
      storage.listGroups({ filter: {}, countMax: pageSize, isEmptyToo: false }),
    ),
  ]
}

/** One filter at a time, then several: what is selected together may be much rarer than each. */
async function filtersOf(stand: Stand): Promise<readonly (readonly [string, LetterFilter])[]> {
  const { storage, now, count } = stand
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
    ['reason', { reasons: ['expired'] }],
    ['largest group', { groupIds: [large.id] }],
    ['smallest group', { groupIds: [rare.id] }],
    ['error class', { errorClasses: [large.errorClass] }],
    ['key', { key: keyOf(Math.floor(count / 2)) }],
    ['time', { died }],
    ['retry count', { redrives: { min: 1 } }],
    ['queue, status', { queues: [queue], states: ['dead'] }],
    ['queue, reason, time', { queues: [queue], reasons: ['expired'], died }],
    ['reason, error class', { reasons: [rare.reason], errorClasses: [rare.errorClass] }],
    ['group, retry count', { groupIds: [large.id], redrives: { min: 1 } }],
    ['key, status', { key: keyOf(Math.floor(count / 3)), states: ['waiting'] }],
    [
      'all together',
      {
        queues: [large.queue],
        states: ['waiting', 'dead'],
        reasons: [large.reason],
        errorClasses: [large.errorClass],
        groupIds: [large.id],
        redrives: { max: 0 },
        died,
      },
    ],
  ]
}

export async function timePages(stand: Stand): Promise<Timed[]> {
  const { storage, now } = stand
  const timed: Timed[] = []
  const page = (filter: LetterFilter, value?: Instant): Promise<LettersPage> =>
    storage.listLetters({
      filter,
      order: 'diedAt',
      isDescending: true,
      countMax: pageSize,
      lookMax,
      bytes: 'head',
      ...(value !== undefined && { after: { value, id: 'z' } }),
    })
  for (const [name, filter] of await filtersOf(stand)) {
    timed.push(await time(stand, `first page: ${name}`, pageAimMs, () => page(filter)))
    let turn = 0
    timed.push(
      await time(stand, `deep page: ${name}`, pageAimMs, () => {
        // Another depth each time: between one and twenty-eight days back.
        turn = (turn + 11) % 28
        return page(filter, now - (turn + 1) * usPerDay)
      }),
    )
  }
  return timed
}

/** How long until the first results are there, and until a page is full. */
export async function timeSearches(stand: Stand): Promise<Timed[]> {
  const filters: readonly (readonly [string, LetterFilter])[] = [
    ['text in the message', { text: needle.text }],
    ['header', { header: needle.header }],
    ['JSON path', { json: needle.json }],
  ]
  const timed: Timed[] = []
  for (const [name, filter] of filters) {
    timed.push(await time(stand, `first results: ${name}`, searchAimMs, () => search(stand, filter, 1)))
    timed.push(
      await time(stand, `page of ${pageSize}: ${name}`, null, () => search(stand, filter, pageSize), 4),
    )
  }
  timed.push({ ...longest(stand.subject), aimMs: 1_000 })
  return timed
}

const statementMs = new Map<string, number>()

async function search({ storage, subject }: Stand, filter: LetterFilter, countMax: number): Promise<void> {
  let found = 0
  let after: LettersPage['next'] = null
  for (let lookMax = 2_000; found < countMax; lookMax = Math.min(lookMax * 2, 20_000)) {
    const began = performance.now()
    const query = { filter, order: 'diedAt', isDescending: true, countMax: countMax - found } as const
    const page: LettersPage = await storage.listLetters({
      ...query,
      lookMax,
      bytes: 'head',
      ...(after !== null && { after }),
    })
    statementMs.set(subject, Math.max(statementMs.get(subject) ?? 0, performance.now() - began))
    found += page.letters.length
    after = page.next
    if (after === null) break
  }
  if (found === 0) throw new Error('nothing was found')
}

function longest(subject: string): Timed {
  const ms = statementMs.get(subject) ?? 0
  return { subject, operation: 'longest step of a search', calls: 1, p50Ms: ms, p99Ms: ms, aimMs: null }
}

export async function time(
  { subject, calls }: Stand,
  operation: string,
  aimMs: number | null,
  call: () => Promise<unknown>,
  part = 1,
): Promise<Timed> {
  // Not the first ones: a statement is planned once.
  for (let warm = 0; warm < 5; warm++) await call()
  const times: number[] = []
  const count = Math.ceil(calls / part)
  for (let turn = 0; turn < count; turn++) {
    const began = performance.now()
    await call()
    times.push(performance.now() - began)
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
