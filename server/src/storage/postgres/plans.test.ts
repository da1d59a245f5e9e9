/**
 * The query plans on tables with tens of thousands of rows: each statement uses its index, so its cost does
 * not grow with the table. The plans are those of the server: with its session settings, and generic.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs, requireService } from '../../../../tools/services/require-service.ts'
import { aFailure, anOrigin, bytes, hour, newItems, noon } from '../../../test/make.ts'
import { run, type TestDatabase, testDatabase } from '../../../test/postgres.ts'
import type { ItemOrder, ItemsQuery } from '../contract/items.ts'
import type { LetterCursor, RangesQuery } from '../contract/letters.ts'
import { archiveEnded } from './archive/archive.ts'
import { readArchived } from './archive/read-archive.ts'
import { addLetters, moveLetters, readSetPage, skipPending } from './campaigns/campaign-letters.ts'
import { readLetterStates, readPendingPlaces } from './campaigns/send-progress.ts'
import type { Statement } from './connection/connection.ts'
import { Connections } from './connection/connections.ts'
import { oldestOpen, openSince, prepareCount } from './counts/letter-count-queries.ts'
import { lockDue, lockEnded, peekDue } from './items/advance.ts'
import { completeInPlace, completeKept, completeLeased, completePlain } from './items/complete-plain.ts'
import { leaseAll, leaseLive } from './items/lease.ts'
import { peekEnded } from './items/lease-ends.ts'
import { leaseOne } from './items/lease-one.ts'
import { listStatement } from './items/list-items.ts'
import { deleteByIds, lockByIds, lockByState } from './items/remove.ts'
import { lockItems } from './items/settle.ts'
import { lockSeenLater, updateFirstSeen } from './letters/groups.ts'
import { findIndexRanges } from './letters/index-ranges.ts'
import { lockLetterRows, updateFailures, updateStates } from './letters/letter-rows.ts'
import { readSnapshotRows } from './letters/letter-snapshots.ts'
import { arrivals, prepareListGroups } from './letters/list-groups.ts'
import { preparePage } from './letters/merge-ranges.ts'
import { findByUuid, readLetters } from './letters/read-letters.ts'
import { sendLetters } from './letters/redrive.ts'

const postgres = await requireService('postgres')

describe('query plans on filled tables', needs(postgres), () => {
  let database: TestDatabase
  let connections: Connections
  let lettersId = 0

  beforeAll(async () => {
    database = await testDatabase()
    const storage = await database.open()
    const create = { op: 'create-queue', now: noon } as const
    await storage.write([
      { ...create, queue: { name: 'orders' } },
      { ...create, queue: { name: 'letters' } },
    ])
    const at = { partition: 0, now: noon } as const
    for (let round = 0; round < 10; round++) {
      const items = newItems(2_000, `${round}`)
      const letters = items.map(({ payload }, index) => ({
        payload,
        sourceId: `${round}-${index}`,
        origin: anOrigin(),
        failure: aFailure({
          errorCode: `reason-${index % 20}`,
          message: `${'abcdefghij'[index % 10]} failed`,
        }),
        key: bytes(`key-${index % 500}`),
        deadLetteredAt: noon + index,
      }))
      await storage.write([
        { op: 'produce', ...at, queue: 'orders', items },
        { op: 'import', ...at, queue: 'letters', items: letters },
      ])
    }
    const scheduled = [{ payload: bytes('later'), availableAt: noon + hour }]
    await run(storage, { op: 'produce', ...at, queue: 'orders', items: scheduled })
    // Empty tables too, so that the planner knows that they are empty.
    await database.rows('vacuum analyze')
    const [row] = await database.rows<{ id: number }>(`select id from redrive.queues where name = 'letters'`)
    lettersId = row?.id ?? 0
    connections = new Connections({
      url: database.url,
      credentials: undefined,
      poolMax: 1,
      connectTimeoutMs: 10_000,
    })
  })

  afterAll(async () => {
    await connections?.close()
    await database?.[Symbol.asyncDispose]()
  })

  /** The generic plan, as for a prepared statement. */
  async function planOf(statement: Statement): Promise<string> {
    const count = new Set(statement.text.match(/\$\d+/g)).size
    return connections.use(async (connection) => {
      await connection.query({ text: `prepare explained as ${statement.text}` })
      const values = Array.from({ length: count }, () => 'null').join(', ')
      const text = `explain (costs off) execute explained${count === 0 ? '' : `(${values})`}`
      const rows = await connection.query({ text })
      await connection.query({ text: 'deallocate explained' })
      return rows.map((row) => row['QUERY PLAN'] as string).join('\n')
    })
  }

  it.each([
    ['lease', leaseLive, ['items_live_ready'], ['items_sourced']],
    ['lease from one partition', leaseOne, ['items_live_ready', 'Tid Scan'], ['items_sourced']],
    ['lease with letters', leaseAll, ['items_live_ready', 'items_sourced_ready', 'Merge Append'], []],
    ['complete', completeLeased, ['items_live_id', 'Tid Scan'], ['items_sourced']],
    ['complete where it was leased', completeInPlace, ['Tid Scan'], ['items_live_id', 'items_sourced']],
    ['complete or refuse', completePlain, ['items_live_id', 'Tid Scan'], ['items_sourced']],
    ['complete and keep', completeKept, ['items_live_id', 'Tid Scan'], ['items_sourced']],
    ['retry', lockItems, ['items_live_id', 'items_sourced_id'], []],
    ['delete: lock', lockByIds, ['items_live_id', 'items_sourced_id'], []],
    ['delete', deleteByIds, ['items_live_id', 'items_sourced_id', 'Tid Scan'], []],
    ['clear: lock', lockByState, ['items_live_id', 'items_sourced_id', 'Merge Append'], []],
    ['due partitions: read', peekDue, ['items_live_due', 'items_sourced_due', 'Merge Append'], []],
    ['ended leases: read', peekEnded, ['lease_ends_deadline', 'items_live_id', 'items_sourced_id'], []],
    ['ended leases: lock', lockEnded, ['items_live_id', 'items_sourced_id'], []],
    ['due items: lock', lockDue, ['items_live_due', 'items_sourced_due', 'Merge Append'], []],
    ['archive', archiveEnded, ['items_live_ended', 'items_sourced_ended', 'Merge Append'], []],
    ['letters: lock', lockLetterRows, ['items_sourced_uuid'], []],
    ['letters: update states', updateStates, ['items_sourced_uuid', 'Tid Scan'], []],
    ['letters: update failures', updateFailures, ['items_sourced_uuid', 'Tid Scan'], []],
    ['letters: read snapshots', readSnapshotRows, ['items_sourced_uuid'], []],
    ['letters: send', sendLetters, ['letter_edits_pkey', 'Tid Scan'], []],
    ['letters: read', readLetters, ['items_sourced_uuid'], []],
    ['archived letters: read', readArchived, ['archive_uuid'], []],
    ['letters by UUID', findByUuid, ['items_sourced_uuid', 'archive_uuid'], []],
    ['open letters', openSince, ['open_letters_pkey', 'items_sourced_died'], []],
    ['oldest open letters', oldestOpen, ['items_sourced_died'], []],
    ['groups: lock those seen later', lockSeenLater, ['groups_pkey'], []],
    ['groups: update the first time', updateFirstSeen, ['groups_pkey', 'Tid Scan'], []],
    ['arrivals', arrivals, ['group_hours_pkey'], []],
    ['campaign: pending places', readPendingPlaces, ['campaign_letters_state'], []],
    ['campaign: letter states', readLetterStates, ['campaign_letters_pkey'], []],
    ['campaign: moves', moveLetters, ['campaign_letters_pkey'], ['campaign_letters_state']],
    ['campaign: page', readSetPage, ['campaign_letters_state'], []],
    ['campaign: skip', skipPending, ['campaign_letters_state', 'campaign_letters_pkey'], []],
    ['campaign: add', addLetters, ['campaign_letters_letter', 'campaign_letters_state'], []],
  ] as const)('the statement "%s" uses its index', async (_, statement, used, unused) => {
    const plan = await planOf(statement)
    for (const index of used) expect(plan).toContain(index)
    for (const index of unused) expect(plan).not.toContain(index)
    // Joins that read a whole table are fast only while the table is empty.
    expect(plan).not.toMatch(/Seq Scan on items|Hash Join|Merge Join|Materialize/)
  })

  // Letters are not listed by creation or priority.
  const orders: Record<Exclude<ItemOrder, 'priority' | 'createdAt'>, string> = {
    id: 'items_sourced_id',
    updatedAt: 'items_sourced_updated',
    deadLetteredAt: 'items_sourced_died',
    availableAt: 'items_sourced_scheduled',
  }
  const queries: Partial<ItemsQuery>[] = [
    {},
    { states: ['dead'] },
    { states: ['waiting', 'leased'], isDescending: true },
    { partition: 0 },
    { from: { value: noon, id: '0'.repeat(27), isIncluded: false } },
  ]
  it.each(
    Object.entries(orders).flatMap(([order, index]) =>
      queries.map((query) => [order as ItemOrder, query, index] as const),
    ),
  )('a page of items by %s with %o uses the index of the order', async (order, query, index) => {
    const listed = { queue: 'letters', countMax: 20, order, ...query }
    const { text, values } = listStatement(listed, 'items', '', lettersId, 1)
    const rows = await connections.read({ text: `explain (costs off) ${text}` }, values)
    const plan = rows.map((row) => row['QUERY PLAN'] as string).join('\n')
    expect(plan).not.toMatch(/Seq Scan on items/)
    if (order === 'availableAt' && query.states !== undefined) return
    if (query.states?.includes('waiting') === false) {
      // No letter has this state, and the index shows it.
      expect(plan).toMatch(/Index Cond: .*state = 4/)
      return
    }
    // There are many waiting letters, which must not be sorted.
    const branch = plan
      .split('Limit')
      .find((part) => part.includes(index) && (order === 'availableAt' || !/state = [1-4]/.test(part)))
    expect(branch, plan).toBeDefined()
    expect(branch).not.toContain('Sort')
  })

  it('a letter is found by its root id', async () => {
    const listed = { queue: 'letters', countMax: 20, rootIds: ['0'.repeat(27)] }
    const { text, values } = listStatement(listed, 'items', '', lettersId, 1)
    const rows = await connections.read({ text: `explain (costs off) ${text}` }, values)
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('items_sourced_uuid')
  })

  describe('a page of letters', () => {
    const page = { order: 'deadLetteredAt', isDescending: true } as const
    const after = { value: noon + 500, id: '0'.repeat(27) }
    const cases: readonly (readonly [string, RangesQuery & Readonly<{ after?: LetterCursor }>, string])[] = [
      ['of all', { ...page, filter: {} }, 'items_sourced_died'],
      [
        'of a queue and state',
        { ...page, filter: { queues: ['letters'], states: ['waiting'] } },
        'items_sourced_died',
      ],
      ['after a cursor', { ...page, filter: {}, after }, 'items_sourced_died'],
      ['oldest first', { ...page, filter: {}, after, isDescending: false }, 'items_sourced_died'],
      [
        'of a time',
        { ...page, filter: { died: { from: noon + 9, until: noon + 99 } } },
        'items_sourced_died',
      ],
      ['last changed', { ...page, filter: {}, order: 'updatedAt', after }, 'items_sourced_updated'],
      ['of a reason', { ...page, filter: { errorCodes: ['reason-3'] } }, 'items_sourced_group'],
      ['of redrives', { ...page, filter: { retryCount: { max: 0 } }, after }, 'items_sourced_group'],
      ['of a key', { ...page, filter: { key: bytes('key-7') }, after }, 'items_sourced_key'],
      ['that is due', { ...page, filter: { dueBy: noon } }, 'items_sourced_redrive'],
      ['of ids', { ...page, filter: { letterIds: ['0'.repeat(27)] } }, 'items_sourced_uuid'],
      ['of a source', { ...page, filter: { sourceIds: ['1-1'] } }, 'items_sourced_source'],
      ['of a reference', { ...page, filter: { references: ['a', 'b'] } }, 'items_sourced_reference'],
      ['of a trace', { ...page, filter: { traceIds: ['0'.repeat(32)] } }, 'items_sourced_trace'],
      [
        'with a text',
        { ...page, filter: { text: 'A FAILED', errorCodes: ['reason-0'] } },
        'items_sourced_group',
      ],
      ['with a value', { ...page, filter: { json: { path: ['a'], value: 'b' } } }, 'items_sourced_died'],
    ]
    it.each(cases)('a page of letters %s uses its index', async (_, query, index) => {
      const reader = { query: connections.read.bind(connections) }
      const ranges = await findIndexRanges(reader, query)
      const from = query.after === undefined ? {} : { after: query.after }
      const step = { ...from, count: 20, wanted: 20, round: 0, bytes: 'none' } as const
      const { text, values } = preparePage(ranges, step)
      const rows = await connections.read({ text: `explain (costs off) ${text}` }, values)
      const plan = rows.map((row) => row['QUERY PLAN'] as string).join('\n')
      const probed = plan.split('CTE probed')[1]?.split('CTE edge')[0] ?? ''
      expect(probed, plan).toContain(index)
      const { dueBy, letterIds, sourceIds } = query.filter
      const isUnordered = [dueBy, letterIds, sourceIds].some((value) => value !== undefined)
      if (!isUnordered) expect(probed, plan).not.toContain('Sort')
      expect(plan.match(/Tid Scan on items_sourced/g)?.length ?? 0, plan).toBeGreaterThan(0)
      expect(plan).not.toMatch(/Seq Scan on items|Hash Join|Merge Join/)
    })

    it.each([
      [
        'with a filter on every field',
        { queues: ['letters'], key: bytes('key-1'), errorCodes: ['a'], payloadText: 'x' },
      ],
      ['of any queue, by time', { archived: { from: noon, until: noon + hour }, states: ['done'] as const }],
    ])('archived letters are found by the time of archiving, %s', async (_, filter) => {
      const reader = { query: connections.read.bind(connections) }
      const ranges = await findIndexRanges(reader, { filter, order: 'archivedAt', isDescending: true })
      const after = { value: noon, id: '' }
      const step = { after, count: 1_000, wanted: 20, round: 0, bytes: 'head' } as const
      const { text, values } = preparePage(ranges, step)
      const rows = await connections.read({ text: `explain (costs off) ${text}` }, values)
      const plan = rows.map((row) => row['QUERY PLAN'] as string).join('\n')
      const probed = plan.split('CTE probed')[1]?.split('CTE edge')[0] ?? ''
      expect(probed, plan).toContain('archive_archived')
      expect(probed, plan).not.toContain('Sort')
      expect(plan.match(/Tid Scan on archive/g)?.length ?? 0, plan).toBe(2)
      expect(plan).not.toMatch(/Seq Scan on archive|Hash Join|Merge Join/)
    })

    const all = { from: noon, until: noon + 1_999 }
    it.each([
      ['newest first, from within', true, noon + 100, all],
      ['oldest first, from within', false, noon + 1_900, all],
      ['newest first, from beyond', true, noon + 1_999, { from: noon, until: noon + 100 }],
      ['oldest first, from beyond', false, noon, { from: noon + 1_900, until: noon + 1_999 }],
    ] as const)(
      'a page within a time range, %s, reads only the range',
      async (_, isDescending, value, died) => {
        const query = {
          filter: { queues: ['letters'], states: ['waiting'] as const, died },
          order: 'deadLetteredAt' as const,
          isDescending,
        }
        const ranges = await findIndexRanges({ query: connections.read.bind(connections) }, query)
        const { text, values } = preparePage(ranges, {
          after: { value, id: '' },
          count: 20,
          wanted: 20,
          round: 0,
          bytes: 'none',
        })
        const rows = await connections.read(
          { text: `explain (analyze, buffers, costs off, timing off) ${text}` },
          values,
        )
        const plan = rows.map((row) => row['QUERY PLAN'] as string).join('\n')
        // The whole index has more than a hundred pages.
        const pages = Number(/Buffers: shared hit=(\d+)/.exec(plan.split('CTE probed')[1] ?? '')?.[1])
        expect(pages, plan).toBeLessThan(30)
      },
    )

    it('letters are counted from counts, and from sums where these are enough', async () => {
      const filter = { queues: ['letters'], states: ['waiting'] } as const
      const ofReason = { ...filter, errorCodes: ['reason-3'] }
      for (const [index, [{ text }, values]] of [
        ['letter_sums_pkey', prepareCount({ filter, by: ['queue', 'state', 'retryCount'] })],
        ['slug_sums_pkey', prepareCount({ filter: { slugs: ['a'] }, by: ['slug', 'state'] })],
        ['letter_counts_pkey', prepareCount({ filter: ofReason, by: ['queue', 'state', 'slug'] })],
        [
          'letter_counts_pkey',
          prepareListGroups({ filter: ofReason, countMax: 20, isEmptyToo: true, after: { count: 5, id: 1 } }),
        ],
      ] as const) {
        const rows = await connections.read({ text: `explain (costs off) ${text}` }, values)
        const plan = rows.map((row) => row['QUERY PLAN'] as string).join('\n')
        expect(plan).toContain(index)
        expect(plan).not.toMatch(/items_sourced_(?!group)|Seq Scan|Hash Join|Merge Join/)
      }
    })
  })
})
