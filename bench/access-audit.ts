/**
 * The cost of audit rows: several callers redrive letters one by one, with and without a row for each. The
 * rows are linked in chains, which no other write uses, so the difference is the price of the audit log.
 */
import type { Storage } from '../server/src/storage/contract/storage.ts'
import { openStorage } from '../server/src/storage/open-storage.ts'
import { searchAll } from '../server/src/storage/search/search-letters.ts'
import type { StoreKind } from './arguments.ts'
import { openBenchStores, storeNames } from './bench-stores.ts'
import { fillWithLetters } from './letters/fill-with-letters.ts'
import { toMeasured } from './letters/writes.ts'
import type { Measured } from './report.ts'

const deadQueue = 'orders-dead'
const workQueue = 'orders'
export const auditCallers = 8
const lettersPerRead = 1_000

export type AuditOptions = Readonly<{
  stores: readonly StoreKind[]
  /** Letters that are redriven in each way. */
  count: number
  rounds: number
}>

export async function measureAudit({ stores, count, rounds }: AuditOptions): Promise<{
  measured: readonly Measured[]
  notes: readonly string[]
}> {
  await using places = await openBenchStores(stores)
  const measured: Measured[] = []
  const notes = [...places.notes]
  for (const kind of stores) {
    const place = await places.create(kind)
    const storage = await openStorage(place.target)
    try {
      const ids = await prepare(storage, count * (rounds * 2 + 1))
      const take = (at: number) => ids.slice(at * count, (at + 1) * count)
      const runs = { plain: [] as Measured[], audited: [] as Measured[] }
      const measure = async (at: number, isAudited: boolean): Promise<void> => {
        const subject = `${storeNames[kind]}, ${isAudited ? '' : 'no '}audit rows`
        const row = await redrive(storage, subject, take(at), isAudited)
        runs[isAudited ? 'audited' : 'plain'].push(row)
      }
      // The first run fills the caches of the store, and does not count.
      await redrive(storage, '', take(0), true)
      for (let round = 0; round < rounds; round++) {
        // Neither way is always first: the store grows with each run.
        await measure(round * 2 + 1, round % 2 === 1)
        await measure(round * 2 + 2, round % 2 === 0)
      }
      const [plain, audited] = [findBest(runs.plain), findBest(runs.audited)]
      measured.push(plain, audited)
      const percent = (1 - audited.perSecond / plain.perSecond) * 100
      notes.push(`${storeNames[kind]}: audit rows cost ${percent.toFixed(1)} % of the redrives per second`)
    } finally {
      await storage.close()
      await place.remove()
    }
  }
  return { measured, notes }
}

async function prepare(storage: Storage, count: number): Promise<readonly string[]> {
  const now = storage.clock.now()
  await storage.write([
    { op: 'create-queue', queue: { name: deadQueue }, now },
    { op: 'create-queue', queue: { name: workQueue, deadQueue }, now },
  ])
  await fillWithLetters(storage, { subject: '', count, now, deadQueue, onProgress: () => {} })
  const ids: string[] = []
  const query = {
    filter: { queues: [deadQueue] },
    order: 'deadLetteredAt',
    isDescending: false,
    countMax: lettersPerRead,
    bytes: 'none',
  } as const
  for await (const { found } of searchAll(storage, query)) ids.push(...found.map(({ item }) => item.rootId))
  return ids
}

async function redrive(
  storage: Storage,
  subject: string,
  ids: readonly string[],
  isAudited: boolean,
): Promise<Measured> {
  const times: number[] = []
  let next = 0
  const startedAt = performance.now()
  const call = async (): Promise<void> => {
    while (next < ids.length) {
      const letterId = ids[next++] as string
      const now = storage.clock.now()
      const began = performance.now()
      const audit = {
        at: now,
        actor: 'bench',
        action: 'letter.redrive',
        reason: 'benchmark',
        requestId: 'request',
        details: { target: null },
      }
      const rules = { isDeadAllowed: true, isCapped: false, actor: 'bench', now }
      const letters = [{ letterId, queue: workQueue }]
      const [[result]] = await storage.write([
        { op: 'redrive', letters, ...rules, ...(isAudited && { audit }) },
      ] as const)
      if (result?.isStarted !== true) throw new Error(`letter ${letterId} was not redriven`)
      times.push(performance.now() - began)
    }
  }
  await Promise.all(Array.from({ length: auditCallers }, call))
  const row = toMeasured(subject, 'redrive', ids.length, startedAt, times)
  return { ...row, batch: 1, callers: auditCallers }
}

function findBest(rows: readonly Measured[]): Measured {
  return rows.reduce((best, row) => (row.perSecond > best.perSecond ? row : best))
}
