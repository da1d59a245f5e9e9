/**
 * Stores dead records as letters. The letters, the end of redrives that failed again, and the positions
 * behind the records are one transaction. If the process is killed before it, the records are read again; if
 * it is killed after it, the position says that they are stored. The offset is committed to Kafka afterwards,
 * for people who look at the lag: the position in the store decides where reading continues.
 *
 * A letter whose source id exists already is either the same death, which was written to the topic twice, or
 * another record with the same place, because its topic was created again. Their bytes tell them apart, and
 * the times of the original records, if the worker names them.
 */
import { createHash } from 'node:crypto'
import type { Clock, Instant } from '../../../core/time/instant.ts'
import { readTraceHeaders } from '../../../core/trace/trace-headers.ts'
import { linksMax, type Tracing } from '../../../core/trace/tracing.ts'
import type { Engine } from '../../../engine/engine.ts'
import { KnownError } from '../../../errors.ts'
import {
  type CapturedLetter,
  type DeadRecord,
  nameReference,
  readRecord,
  tombstoneKind,
} from '../../../letters/envelope/read-record.ts'
import type { Import, ItemToImport } from '../../../storage/contract/items.ts'
import type { KafkaAdvance, ReturnLetters } from '../../../storage/contract/kafka.ts'
import type { Command, StoreReads } from '../../../storage/contract/storage.ts'
import type { ClaimedPartition } from './claimed-partition.ts'
import { findReturns, type RedriveName } from './find-returns.ts'

export type IngestParts = Readonly<{
  cluster: string
  group: string
  engine: () => Pick<Engine, 'write'>
  storage: () => StoreReads
  clock: Clock
  /** Undefined: no spans are created. */
  tracing?: Tracing
}>

/** Consecutive records of one partition, and the offset behind them. */
export type Slice = Readonly<{ claimed: ClaimedPartition; records: readonly DeadRecord[]; until: number }>
export type Ingested = Readonly<{ captured: number; returned: number; repeated: number }>

type Letter = Readonly<{
  queue: string
  queuePartition: number
  item: ItemToImport & Readonly<{ sourceId: string }>
  captured: CapturedLetter
}>
type Split = Readonly<{ letters: readonly Letter[]; returns: ReturnLetters['returns'] }>

const attemptsMax = 3

/**
 * Stores the slices in one transaction. Rejects with KAFKA_PARTITION_LOST if another server has claimed one.
 */
export async function ingest(parts: IngestParts, slices: readonly Slice[]): Promise<Ingested> {
  const { clock, storage, cluster } = parts
  const startedAtMs = performance.now()
  const now = clock.now()
  const letters = slices.flatMap(({ claimed, records }) =>
    records.map((record) => toLetter(record, claimed, now)),
  )
  for (let attempt = 1; ; attempt++) {
    const names = await findReturns(
      storage(),
      cluster,
      letters.map(({ captured }) => captured),
    )
    const split = splitReturns(letters, names)
    try {
      const ingested = await writeNew(parts, slices, split)
      if (parts.tracing !== undefined) traceIngest(parts.tracing, slices, letters, startedAtMs)
      return ingested
    } catch (error) {
      // A letter was archived or deleted since its redrive was found, or another record was its death: look
      // again.
      const isGone = error instanceof KnownError && error.code === 'LETTER_NOT_FOUND'
      if (!isGone || attempt === attemptsMax) throw error
    }
  }
}

/** A span per dead-letter topic, linked to the traces of its records. */
function traceIngest(
  tracing: Tracing,
  slices: readonly Slice[],
  letters: readonly Letter[],
  startedAtMs: number,
): void {
  for (const [topic, own] of Map.groupBy(slices, ({ claimed }) => claimed.topic)) {
    const queues = new Set(own.map(({ claimed }) => claimed.queue))
    const stored = letters.filter(({ queue }) => queues.has(queue))
    if (stored.length === 0) continue
    const links = stored.slice(0, linksMax).map(({ captured }) => readTraceHeaders(captured.headers))
    tracing.start({ operation: 'ingest', destination: topic, links, startedAtMs }).end({
      ids: stored.map(({ item }) => item.sourceId),
    })
  }
}

async function writeNew(parts: IngestParts, slices: readonly Slice[], split: Split): Promise<Ingested> {
  const { letters, returns } = split
  const done = { captured: letters.length, returned: returns.length, repeated: 0 }
  try {
    await write(parts, slices, letters, returns, true)
    return done
  } catch (error) {
    if (!(error instanceof KnownError) || error.code !== 'SOURCE_ID_EXISTS') throw error
  }
  const fresh = await separateRepeats(parts.storage(), letters)
  await write(parts, slices, fresh, returns, false)
  return { ...done, captured: fresh.length, repeated: letters.length - fresh.length }
}

async function write(
  { engine, clock, cluster, group }: IngestParts,
  slices: readonly Slice[],
  letters: readonly Letter[],
  returns: ReturnLetters['returns'],
  isNewOnly: boolean,
): Promise<void> {
  const now = clock.now()
  const byPartition = Map.groupBy(letters, ({ queue, queuePartition }) => `${queue}\n${queuePartition}`)
  const imports = [...byPartition.values()].flatMap((own): Import[] => {
    const [first] = own
    if (first === undefined) return []
    const { queue, queuePartition: partition } = first
    return [{ op: 'import', queue, partition, items: own.map(({ item }) => item), isNewOnly, now }]
  })
  const commands: Command[] = [
    { op: 'advance-kafka-positions', cluster, group, positions: slices.map(toAdvance), now },
    ...imports,
  ]
  if (returns.length > 0) commands.push({ op: 'return-letters', returns, now })
  await engine().write(commands)
}

function toAdvance({ claimed, records, until }: Slice): KafkaAdvance {
  const { topic, partition, epoch, stored } = claimed
  return { topic, partition, epoch, from: stored, to: until, recordCount: records.length }
}

function toLetter(record: DeadRecord, claimed: ClaimedPartition, now: number): Letter {
  const { queue, queuePartition, incarnation } = claimed
  const { letter, isTombstone } = readRecord(record, now)
  const { origin, payload, key, headers, failure, history, deadLetteredAt = now } = letter
  const sourceId = `${letter.sourceId}${incarnation === 0 ? '' : `~${incarnation}`}`
  const reference = nameReference(record)
  const kind = isTombstone ? tombstoneKind : ''
  return {
    queue,
    queuePartition,
    captured: letter,
    item: { sourceId, origin, payload, key, headers, failure, history, deadLetteredAt, reference, kind },
  }
}

function splitReturns(letters: readonly Letter[], names: readonly (RedriveName | undefined)[]): Split {
  return {
    letters: letters.filter((_, at) => names[at] === undefined),
    returns: letters.flatMap(({ captured }, at) => {
      const name = names[at]
      return name === undefined ? [] : [{ ...name, failure: captured.failure }]
    }),
  }
}

/** Leaves out letters that are already stored, and renames other letters that have the source id of one. */
async function separateRepeats(storage: StoreReads, letters: readonly Letter[]): Promise<readonly Letter[]> {
  const stored = await readStored(
    storage,
    letters.map(({ item }) => item.sourceId),
  )
  const seen = new Map<string, RecordIdentity>()
  return letters.flatMap((letter): readonly Letter[] => {
    const { queue, item } = letter
    const key = `${queue}\n${item.sourceId}`
    const identity = identify(item)
    const before = stored.get(key) ?? seen.get(key)
    seen.set(key, before ?? identity)
    if (before === undefined) return [letter]
    if (isSameRecord(before, identity)) return []
    const renamed = `${item.sourceId}/${nameIdentity(identity)}`
    const isKnown = seen.has(`${queue}\n${renamed}`)
    seen.set(`${queue}\n${renamed}`, identity)
    return isKnown ? [] : [{ ...letter, item: { ...item, sourceId: renamed } }]
  })
}

/** Stored letters by queue and source id. */
async function readStored(
  storage: StoreReads,
  sourceIds: readonly string[],
): Promise<Map<string, RecordIdentity>> {
  const records = await storage.findLetterIds([...new Set(sourceIds)])
  const letterIds = [...new Set(records.map(({ letterId }) => letterId))]
  const [live, archived] = await Promise.all([
    storage.getLetters(letterIds, 'all'),
    storage.getArchivedLetters(letterIds),
  ])
  const items = [...live, ...archived.map(({ item }) => item)]
  return new Map(items.map((item) => [`${item.queue}\n${item.sourceId}`, identify(item)]))
}

/** `createdAt`: the time of the original record; null: its worker does not name it. */
type RecordIdentity = Readonly<{ content: string; createdAt: Instant | null }>

function identify(item: Pick<ItemToImport, 'key' | 'payload' | 'origin' | 'failure'>): RecordIdentity {
  const { origin, failure } = item
  // Without a time of its own, a record has the time of its first failure.
  const isNamed = origin?.createdAt !== undefined && origin.createdAt !== failure?.firstFailedAt
  return { content: digest(item), createdAt: isNamed ? origin.createdAt : null }
}

function isSameRecord(one: RecordIdentity, other: RecordIdentity): boolean {
  const areTimed = one.createdAt !== null && other.createdAt !== null
  return one.content === other.content && (!areTimed || one.createdAt === other.createdAt)
}

function nameIdentity({ content, createdAt }: RecordIdentity): string {
  const name =
    createdAt === null ? content : createHash('sha256').update(`${content} ${createdAt}`).digest('hex')
  return name.slice(0, 12)
}

function digest({ key = null, payload }: Pick<ItemToImport, 'key' | 'payload'>): string {
  const hash = createHash('sha256').update(key === null ? '-' : `${key.length}:`)
  return hash
    .update(key ?? '')
    .update(payload)
    .digest('hex')
}
