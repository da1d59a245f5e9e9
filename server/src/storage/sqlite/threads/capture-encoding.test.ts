import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import fc from '../../../../test/fast-check.ts'
import { aFailure, anOrigin, bytes, minute, noon } from '../../../../test/make.ts'
import type { Import, ItemToImport } from '../../contract/items.ts'
import type { Database } from '../connection/database.ts'
import { openFile } from '../connection/database-file.ts'
import { verifyCounts } from '../counts/verify.ts'
import { Writer } from '../write.ts'
import { decodeResult, encodeCommand, type WriterCommand } from './capture-encoding.ts'
import { pack, unpack } from './thread-messages.ts'

let databases: Database[]
beforeEach(() => {
  databases = []
})
afterEach(() => {
  for (const database of databases) database.close()
})

const plain: ItemToImport = { payload: bytes('{}'), origin: anOrigin(), failure: aFailure() }
const rich: ItemToImport = {
  ...plain,
  sourceId: 'a',
  attempts: 3,
  attemptsMax: 5,
  priority: 2,
  kind: 'kind',
  encoding: 'encoding',
  reference: 'reference',
  key: bytes('key'),
  headers: [
    ['name', bytes('value')],
    ['none', null],
  ],
  expireDeadline: noon + minute,
  diedAt: noon - minute,
  history: [aFailure({ message: 'before' })],
  redrives: 12,
}
const { failure: _, ...unexplained } = plain
const letters: readonly ItemToImport[] = [
  plain,
  rich,
  { ...rich, reference: 'the same source again' },
  { ...plain, payload: new Uint8Array(0), key: new Uint8Array(0), sourceId: 'b' },
  unexplained,
  { ...plain, failure: aFailure({ errorClass: 'Other' }), sourceId: 'a' },
]

/** What two writers make of the same letters, sent and as they are; but for ids and what is made up by chance. */
function stored(items: readonly ItemToImport[], send: (command: Import) => WriterCommand) {
  const database = openFile(':memory:', 'full')
  databases.push(database)
  const writer = new Writer(
    database,
    // Not the middle: a letter whose time is not spread would be seen.
    () => 0.25,
    () => noon,
  )
  const backoff = { kind: 'fixed', delayUs: minute, jitter: 0.5 } as const
  const queue = { name: 'dead', redrive: { mode: 'auto', redrivesMax: 3, backoff } } as const
  const sent = send({ op: 'import', queue: 'dead', partition: 0, items, now: noon })
  const [outcome] = writer.write([[{ op: 'create-queue', queue, now: noon }, sent]])
  if (outcome?.isOk !== true) throw outcome?.error
  expect(verifyCounts(database)).toEqual([])
  const tables = ['items', 'groups', 'counts', 'letter_counts', 'open_minutes', 'group_hours']
  return {
    answer: decodeResult(sent, outcome.results[1]),
    rows: tables.map((table) => database.all(`select * from ${table}`)),
  }
}

describe('letters that are sent to the writer', () => {
  it('are stored, counted and answered as if they were not', () => {
    const sent = stored(letters, encodeCommand)
    expect(sent).toEqual(stored(letters, (command) => command))
    expect(sent.rows[0]).toHaveLength(4)
    for (const row of sent.rows[0] ?? []) expect(row.redrive_at).toBe(noon + 0.75 * minute)
  })

  it('are so however many come at once, and wherever among them a source or a cause comes again', () => {
    const letter = fc.record({
      source: fc.option(fc.nat(60)),
      errorClass: fc.constantFrom('Timeout', 'Refused', 'BadData'),
      // A cause of its own, now and then.
      message: fc.oneof(
        { weight: 40, arbitrary: fc.constant('the same') },
        { weight: 1, arbitrary: fc.stringMatching(/^[a-z]{8}$/) },
      ),
      key: fc.option(fc.constant(bytes('key'))),
    })
    fc.assert(
      fc.property(fc.array(letter, { minLength: 1, maxLength: 120, size: 'max' }), (drawn) => {
        const many = drawn.map(
          ({ source, errorClass, message, key }, index): ItemToImport => ({
            ...plain,
            sourceId: source === null ? null : `source ${source}`,
            failure: aFailure({ errorClass, message }),
            key,
            reference: `letter ${index}`,
          }),
        )
        expect(stored(many, encodeCommand)).toEqual(stored(many, (command) => command))
      }),
      { numRuns: 60 },
    )
  })

  it('are the same after they travelled', () => {
    const travel = (command: Import) => unpack(structuredClone(pack(encodeCommand(command))))
    expect(stored(letters, travel)).toEqual(stored(letters, encodeCommand))
  })

  it('are waiting ones only: everything else travels as it is', () => {
    const opOf = (item: ItemToImport) =>
      encodeCommand({ op: 'import', queue: 'dead', partition: 0, items: [plain, item], now: noon }).op
    expect(opOf(rich)).toBe('import-letters')
    expect(opOf({ payload: bytes('no letter') })).toBe('import')
    expect(opOf({ ...plain, availableAt: noon })).toBe('import')
    expect(opOf({ ...plain, givenLeaseDeadline: noon })).toBe('import')
    expect(opOf({ ...plain, letterId: 'another' })).toBe('import')
    expect(opOf({ ...plain, lease: { holder: 'somebody', deadline: noon } })).toBe('import')
  })

  it('are refused like all others', () => {
    const items = [{ ...plain, kind: 'a\u0000b' }]
    expect(() => encodeCommand({ op: 'import', queue: 'dead', partition: 0, items, now: noon })).toThrow(
      'kind',
    )
  })
})
