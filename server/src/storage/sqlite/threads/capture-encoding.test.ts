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
  deadLetteredAt: noon - minute,
  history: [aFailure({ message: 'before' })],
  retryCount: 12,
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

/** Writes the letters with a new writer, encoded or not, and returns its answer and all rows. */
function stored(items: readonly ItemToImport[], encode: (command: Import) => WriterCommand) {
  const database = openFile(':memory:', 'full')
  databases.push(database)
  const writer = new Writer(
    database,
    // Not 0.5: the time of a letter without jitter would be the same.
    () => 0.25,
    () => noon,
  )
  const backoff = { kind: 'fixed', delayUs: minute, jitter: 0.5 } as const
  const queue = { name: 'dead', redrive: { mode: 'auto', redrivesMax: 3, backoff } } as const
  const command = encode({ op: 'import', queue: 'dead', partition: 0, items, now: noon })
  const [outcome] = writer.write([[{ op: 'create-queue', queue, now: noon }, command]])
  if (outcome?.isOk !== true) throw outcome?.error
  expect(verifyCounts(database)).toEqual([])
  const tables = ['items', 'groups', 'counts', 'letter_counts', 'open_minutes', 'group_hours']
  return {
    answer: decodeResult(command, outcome.results[1]),
    rows: tables.map((table) => database.all(`select * from ${table}`)),
  }
}

describe('the encoding of captured letters', () => {
  it('encoded letters are stored, counted and answered like letters that are not encoded', () => {
    const encoded = stored(letters, encodeCommand)
    expect(encoded).toEqual(stored(letters, (command) => command))
    expect(encoded.rows[0]).toHaveLength(4)
    for (const row of encoded.rows[0] ?? []) expect(row.redrive_at).toBe(noon + 0.75 * minute)
  })

  it('repeated sources and causes anywhere in a batch are stored like letters that are not encoded', () => {
    const letter = fc.record({
      source: fc.option(fc.nat(60)),
      errorClass: fc.constantFrom('Timeout', 'Refused', 'BadData'),
      // Few letters have a cause of their own.
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

  it('encoded letters survive the message to the thread', () => {
    const send = (command: Import) => unpack(structuredClone(pack(encodeCommand(command))))
    expect(stored(letters, send)).toEqual(stored(letters, encodeCommand))
  })

  it('only waiting letters are encoded', () => {
    const opOf = (item: ItemToImport) =>
      encodeCommand({ op: 'import', queue: 'dead', partition: 0, items: [plain, item], now: noon }).op
    expect(opOf(rich)).toBe('import-letters')
    expect(opOf({ payload: bytes('no letter') })).toBe('import')
    expect(opOf({ ...plain, availableAt: noon })).toBe('import')
    expect(opOf({ ...plain, givenLeaseDeadline: noon })).toBe('import')
    expect(opOf({ ...plain, letterId: 'another' })).toBe('import')
    expect(opOf({ ...plain, lease: { holder: 'somebody', deadline: noon } })).toBe('import')
  })

  it('an invalid letter is refused before it is sent', () => {
    const items = [{ ...plain, kind: 'a\u0000b' }]
    expect(() => encodeCommand({ op: 'import', queue: 'dead', partition: 0, items, now: noon })).toThrow(
      'kind',
    )
  })
})
