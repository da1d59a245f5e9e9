/**
 * Translates the conditions of a request into a filter of the store, and reports all invalid fields at once.
 */
import { Buffer } from 'node:buffer'
import { type Instant, instantMax, instantMin } from '../../../core/time/instant.ts'
import { findNearest } from '../../../find-nearest.ts'
import { findIdsOfLetters } from '../../../letters/letter-id.ts'
import { isLetterStatus, letterStatuses, toStates } from '../../../ops/metrics/letter-status.ts'
import { type CountedFilter, type LetterFilter, redrivesCounted } from '../../../storage/contract/letters.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import { type FieldFault, InvalidRequest } from '../../http/validation/invalid-request.ts'
import { decodeBase64 } from '../../http/wire/base64.ts'
import { parseInstant } from '../../http/wire/wire-time.ts'
import type { ArchiveSpec, CountedSpec, FilterSpec } from './filter-fields.ts'
import { parseJsonTest } from './json-path.ts'

type QueueList = () => Pick<StoreReads, 'listQueues' | 'getQueue' | 'findLettersByUuid' | 'findLetterIds'>
type Refuse = (field: string, message: string) => void

/** `part` is the part of the request for error messages: `query` or `body.filter`. */
export async function readFilter(spec: FilterSpec, part: string, storage: QueueList): Promise<LetterFilter> {
  const filter = collectFaults(part, (refuse) => readFields(spec, refuse))
  await checkQueues(filter.queues ?? [], part, storage)
  return resolveIds(await resolveClasses(filter, spec, storage), spec, storage)
}

/** Replaces ids of any kind by the ids of the letters that have or had them. */
async function resolveIds(
  filter: LetterFilter,
  spec: Pick<FilterSpec, 'id'>,
  storage: QueueList,
): Promise<LetterFilter> {
  const ids = toList(spec.id)
  return ids === undefined ? filter : { ...filter, letterIds: await findIdsOfLetters(storage(), ids) }
}

/** Refuses names of queues that do not exist: a misspelt name would select nothing without an error. */
async function checkQueues(names: readonly string[], part: string, storage: QueueList): Promise<void> {
  for (const name of names) {
    if ((await storage().getQueue(name)) !== null) continue
    const known: string[] = []
    for await (const queue of readAllQueues(storage())) known.push(queue.name)
    const nearest = findNearest(name, known)
    const hint = nearest === undefined ? '' : `; the nearest name is ${JSON.stringify(nearest)}`
    const message = `names queue ${JSON.stringify(name)}, which does not exist${hint}`
    throw new InvalidRequest([{ field: `${part}.queue`, message }])
  }
}

export async function readArchiveFilter(
  { archived_from, archived_until, ...spec }: ArchiveSpec,
  storage: QueueList,
): Promise<LetterFilter> {
  const filter = collectFaults('query', (refuse): LetterFilter => {
    const archived = readRange('archived', archived_from, archived_until, refuse)
    return { ...readFields(spec, refuse), ...(archived !== undefined && { archived }) }
  })
  return resolveIds(await resolveClasses(filter, spec, storage), spec, storage)
}

/** Accepts only conditions that the counts contain. */
export async function readCountedFilter(
  spec: CountedSpec,
  part: string,
  storage: QueueList,
): Promise<CountedFilter> {
  const counted = collectFaults(part, (refuse) => {
    for (const field of ['retry_count_min', 'retry_count_max'] as const) {
      const max = field === 'retry_count_min' ? redrivesCounted : redrivesCounted - 1
      const given = spec[field] ?? 0
      if (given <= max) continue
      refuse(
        field,
        `is ${given}; at most ${max} can be counted, because ${redrivesCounted} and more are one count`,
      )
    }
    return readCounted(spec, refuse)
  })
  return resolveClasses(counted, spec, storage)
}

/** Calls `read` with a function that reports a fault, and throws all faults together. */
function collectFaults<F>(part: string, read: (refuse: Refuse) => F): F {
  const faults: FieldFault[] = []
  const filter = read((field, message) => void faults.push({ field: `${part}.${field}`, message }))
  if (faults.length > 0) throw new InvalidRequest(faults)
  return filter
}

function readFields(spec: FilterSpec, refuse: Refuse): LetterFilter {
  const died = readRange('dead_lettered', spec.dead_lettered_from, spec.dead_lettered_until, refuse)
  const updated = readRange('updated', spec.updated_from, spec.updated_until, refuse)
  const lastFailed = readRange('last_failed', spec.last_failed_from, spec.last_failed_until, refuse)
  const key = readKey(spec, refuse)
  const json = readJson(spec.json, refuse)
  const sourceIds = toList(spec.source_id)
  const references = toList(spec.reference)
  const traceIds = readTraceIds(spec.trace_id, refuse)
  return {
    ...readCounted(spec, refuse),
    ...(died !== undefined && { died }),
    ...(updated !== undefined && { updated }),
    ...(lastFailed !== undefined && { lastFailed }),
    ...(sourceIds !== undefined && { sourceIds }),
    ...(references !== undefined && { references }),
    ...(traceIds !== undefined && { traceIds }),
    ...(spec.payload_contains !== undefined && { payloadText: spec.payload_contains }),
    ...(key !== undefined && { key }),
    ...(spec.message !== undefined && { text: spec.message }),
    ...(spec.header !== undefined && { header: parseHeader(spec.header) }),
    ...(json !== undefined && { json }),
  }
}

function readTraceIds(given: FilterSpec['trace_id'], refuse: Refuse): LetterFilter['traceIds'] {
  const ids = toList(given)?.map((id) => id.toLowerCase())
  if (ids?.some((id) => !/^[0-9a-f]{32}$/.test(id))) refuse('trace_id', 'must be 32 hexadecimal digits')
  return ids
}

function readKey(spec: Pick<FilterSpec, 'key_text' | 'key_base64'>, refuse: Refuse): LetterFilter['key'] {
  const { key_text: text, key_base64: base64 } = spec
  if (base64 === undefined) return text === undefined ? undefined : Buffer.from(text)
  if (text !== undefined) refuse('key_text', 'and key_base64 are both given; give one of them')
  const bytes = decodeBase64(base64)
  if (bytes === undefined) refuse('key_base64', 'is not base64')
  return bytes
}

function readCounted(spec: CountedSpec, refuse: Refuse): CountedFilter {
  const states = readStatuses(spec.status, refuse)
  const retryCount = readRetryCount(spec.retry_count_min, spec.retry_count_max, refuse)
  const queues = toList(spec.queue)
  const namespaces = toList(spec.namespace)
  const errorCodes = toList(spec.error_code)
  const slugs = toList(spec.slug)
  const errorClasses = toList(spec.error_class)
  const groupIds = toList(spec.group_id)
  const causes = toList(spec.cause_id)
  const origins = toList(spec.origin)
  return {
    ...(queues !== undefined && { queues }),
    ...(namespaces !== undefined && { namespaces }),
    ...(states !== undefined && { states }),
    ...(errorCodes !== undefined && { errorCodes }),
    ...(slugs !== undefined && { slugs }),
    ...(errorClasses !== undefined && { errorClasses }),
    ...(groupIds !== undefined && { groupIds }),
    ...(causes !== undefined && { causes }),
    ...(origins !== undefined && { origins }),
    ...(retryCount !== undefined && { retryCount }),
  }
}

function readStatuses(given: CountedSpec['status'], refuse: Refuse): CountedFilter['states'] {
  const statuses = toList(given)
  for (const status of statuses ?? []) {
    if (!isLetterStatus(status)) refuse('status', `must be one of ${letterStatuses.join(', ')}`)
  }
  return statuses?.filter(isLetterStatus).flatMap(toStates)
}

function readRetryCount(
  min: number | undefined,
  max: number | undefined,
  refuse: Refuse,
): CountedFilter['retryCount'] {
  if (min === undefined && max === undefined) return undefined
  if (min !== undefined && max !== undefined && min > max) {
    refuse('retry_count_min', `is ${min}, more than retry_count_max ${max}: no letter can match`)
  }
  return { ...(min !== undefined && { min }), ...(max !== undefined && { max }) }
}

function readRange(
  name: string,
  fromText: string | undefined,
  untilText: string | undefined,
  refuse: Refuse,
): LetterFilter['died'] {
  const read = (bound: 'from' | 'until', text: string | undefined): Instant | undefined => {
    if (text === undefined) return undefined
    const instant = parseInstant(text)
    if (instant === undefined) refuse(`${name}_${bound}`, 'is not an RFC 3339 time')
    return instant === undefined ? undefined : Math.max(instantMin, Math.min(instant, instantMax))
  }
  const [from, until] = [read('from', fromText), read('until', untilText)]
  if (from !== undefined && until !== undefined && from > until) {
    refuse(`${name}_from`, `is after ${name}_until: no letter can match`)
  }
  if (from === undefined && until === undefined) return undefined
  return { ...(from !== undefined && { from }), ...(until !== undefined && { until }) }
}

function readJson(text: string | undefined, refuse: Refuse): LetterFilter['json'] {
  if (text === undefined) return undefined
  const test = parseJsonTest(text)
  if (!('problem' in test)) return test
  refuse('json', test.problem)
  return undefined
}

/** Splits at the first `=`, so header names that contain one cannot be searched. */
function parseHeader(text: string): NonNullable<LetterFilter['header']> {
  const cut = text.indexOf('=')
  return cut < 0 ? { name: text } : { name: text.slice(0, cut), value: text.slice(cut + 1) }
}

/** Removes duplicates. */
function toList<T extends string | number>(value: T | readonly T[] | undefined): readonly T[] | undefined {
  if (value === undefined) return undefined
  return Array.isArray(value) ? [...new Set(value as T[])] : [value as T]
}

/** Replaces classes by their current queues. If queues are also given, only queues in both remain. */
async function resolveClasses<F extends CountedFilter>(
  filter: F,
  spec: Pick<CountedSpec, 'letter_class'>,
  storage: QueueList,
): Promise<F> {
  const classes = toList(spec.letter_class)
  if (classes === undefined) return filter
  const ofClass: string[] = []
  for await (const { name, letterClass } of readAllQueues(storage())) {
    if (classes.includes(letterClass)) ofClass.push(name)
  }
  const queues =
    filter.queues === undefined ? ofClass : filter.queues.filter((name) => ofClass.includes(name))
  return { ...filter, queues }
}

export async function* readAllQueues(storage: Pick<StoreReads, 'listQueues'>) {
  const countMax = 1_000
  for (let from: string | undefined; ; ) {
    const page = await storage.listQueues({ ...(from !== undefined && { from }), countMax })
    const last = page.at(-1)?.name
    // A page starts with the last queue of the page before.
    for (const queue of page) if (queue.name !== from) yield queue
    if (page.length < countMax || last === undefined) return
    from = last
  }
}
