/**
 * Which letters are meant. One set of names for the list, the export, the counts, the groups and the selection of a
 * campaign; in a query string a name is repeated for several values, in a body it may be a list.
 */
import { type Static, type TProperties, Type } from 'typebox'
import { type Instant, instantMax, instantMin } from '../../../core/instant.ts'
import { isLetterStatus, letterStatus, letterStatuses, statesOf } from '../../../ops/letter-status.ts'
import {
  type ArchiveFilter,
  type CountedFilter,
  type LetterFilter,
  redrivesCounted,
} from '../../../storage/contract/letters.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'
import { type FieldFault, InvalidRequest } from '../../http/validation/invalid-request.ts'
import { storedAsBytes } from '../../http/validation/unstorable-text.ts'
import { formatInstant, parseInstant } from '../../http/wire/wire-time.ts'
import { base64Of, bytesGiven, textOf } from '../values/wire-bytes.ts'
import { parseJsonTest } from './json-path.ts'

const valuesMax = 100

function oneOrMore(description: string, lengthMax = 512, lengthMin = 1) {
  const text = Type.String({ minLength: lengthMin, maxLength: lengthMax })
  return Type.Optional(
    Type.Union([text, Type.Array(text, { minItems: 1, maxItems: valuesMax })], {
      description: `${description} Several: any of them.`,
    }),
  )
}

function time(what: string, bound: 'from' | 'until') {
  const examples = ['2026-01-02T03:04:05Z']
  const description = `${what} ${bound === 'from' ? 'at or after' : 'at or before'} this RFC 3339 time.`
  return Type.Optional(Type.String({ maxLength: 64, description, examples }))
}

const group = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const retryCount = { minimum: 0, maximum: 1_000_000 }

/** What the counts can tell, so that its totals are exact and cost nothing. */
export const countedFields = {
  queue: oneOrMore('In this dead queue.'),
  class: oneOrMore('In a dead queue of this class.'),
  status: oneOrMore(`One of ${letterStatuses.join(', ')}.`, 32),
  reason: oneOrMore('With this reason code, exactly.'),
  slug: oneOrMore('With this reason as one word, such as http_503.'),
  error_class: oneOrMore('With this error class, exactly; an empty one is none.', 512, 0),
  group: Type.Optional(
    Type.Union([group, Type.Array(group, { minItems: 1, maxItems: valuesMax })], {
      description: 'In this group. Several: any of them.',
    }),
  ),
  origin: oneOrMore('From this queue, topic, or channel and consumer.'),
  retry_count_min: Type.Optional(
    Type.Integer({ ...retryCount, description: 'Redriven in vain at least so often.' }),
  ),
  retry_count_max: Type.Optional(Type.Integer({ ...retryCount, description: 'At most so often.' })),
} satisfies TProperties

/** The rest: by index where there is one, else by looking at letters one after the other. */
export const searchedFields = {
  died_from: time('Dead-lettered', 'from'),
  died_until: time('Dead-lettered', 'until'),
  updated_from: time('Last changed', 'from'),
  updated_until: time('Last changed', 'until'),
  last_failed_from: time('Last failed', 'from'),
  last_failed_until: time('Last failed', 'until'),
  key: Type.Optional(
    Type.String({ ...storedAsBytes, maxLength: 10_000, description: 'With this key, as text.' }),
  ),
  key_base64: Type.Optional(Type.String({ maxLength: 14_000, description: 'With this key, as bytes.' })),
  text: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1_000, description: 'In the error message, whatever the case.' }),
  ),
  header: Type.Optional(
    Type.String({ minLength: 1, maxLength: 4_000, description: 'Has this header: `name`, or `name=value`.' }),
  ),
  json: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4_000,
      description:
        'The payload is JSON and has this value there: `$.order.lines[0]["unit price"]=12`. The value is a number, true, false, null, a text in double quotes, or any other text as it stands.',
      examples: ['$.customer.id=4711'],
    }),
  ),
} satisfies TProperties

export const filterFields = { ...countedFields, ...searchedFields }

/** What the archive can be asked for, by the same names and some of its own. */
export const archiveFields = {
  ...countedFields,
  died_from: searchedFields.died_from,
  died_until: searchedFields.died_until,
  key: searchedFields.key,
  key_base64: searchedFields.key_base64,
  text: searchedFields.text,
  source_id: oneOrMore('With this source id, exactly.', 1_024),
  archived_from: time('Archived', 'from'),
  archived_until: time('Archived', 'until'),
} satisfies TProperties
const ArchiveSpec = Type.Object(archiveFields)
export type ArchiveSpec = Static<typeof ArchiveSpec>

/** As a part of a body. */
export const FilterSpec = Type.Object(filterFields, { additionalProperties: false })
export type FilterSpec = Static<typeof FilterSpec>
const CountedSpec = Type.Object(countedFields)
export type CountedSpec = Static<typeof CountedSpec>

const Texts = Type.Optional(Type.Array(Type.String()))
const Text = Type.Optional(Type.String())
const Count = Type.Optional(Type.Integer())

/** As it is shown again. Without bounds: a class is its queues by then, and a path may be longer than it was written. */
export const FilterView = Type.Object(
  {
    queue: Texts,
    status: Texts,
    reason: Texts,
    slug: Texts,
    error_class: Texts,
    group: Type.Optional(Type.Array(Type.Integer())),
    origin: Texts,
    retry_count_min: Count,
    retry_count_max: Count,
    died_from: Text,
    died_until: Text,
    updated_from: Text,
    updated_until: Text,
    last_failed_from: Text,
    last_failed_until: Text,
    key: Text,
    key_base64: Text,
    text: Text,
    header: Text,
    json: Text,
  },
  { additionalProperties: false },
)
export type FilterView = Static<typeof FilterView>

/** `where` names the part of the request in what is said about faults: `query`, or `body.filter`. */
export async function readFilter(
  spec: FilterSpec,
  where: string,
  storage: () => Pick<StoreReads, 'listQueues'>,
): Promise<LetterFilter> {
  const faults: FieldFault[] = []
  const filter = readFields(spec, where, (field, message) => {
    faults.push({ field: `${where}.${field}`, message })
  })
  if (faults.length > 0) throw new InvalidRequest(faults)
  return withQueues(filter, spec, storage)
}

export async function readArchiveFilter(
  { archived_from, archived_until, source_id, ...spec }: ArchiveSpec,
  storage: () => Pick<StoreReads, 'listQueues'>,
): Promise<ArchiveFilter> {
  const faults: FieldFault[] = []
  const refuse: Refuse = (field, message) => void faults.push({ field: `query.${field}`, message })
  const filter: ArchiveFilter = readFields(spec, 'query', refuse)
  const archived = readRange('archived', archived_from, archived_until, refuse)
  const sourceIds = listOf(source_id)
  if (faults.length > 0) throw new InvalidRequest(faults)
  const own = { ...(archived !== undefined && { archived }), ...(sourceIds !== undefined && { sourceIds }) }
  return withQueues({ ...filter, ...own }, spec, storage)
}

function readFields(spec: FilterSpec, where: string, refuse: Refuse): LetterFilter {
  const range = (name: 'died' | 'updated' | 'last_failed') =>
    readRange(name, spec[`${name}_from`], spec[`${name}_until`], refuse)
  const [died, updated, lastFailed] = [range('died'), range('updated'), range('last_failed')]
  const key = bytesGiven(`${where}.key`, spec.key, spec.key_base64)
  const json = readJson(spec.json, refuse)
  return {
    ...readCounted(spec, refuse),
    ...(died !== undefined && { died }),
    ...(updated !== undefined && { updated }),
    ...(lastFailed !== undefined && { lastFailed }),
    ...(key !== undefined && key !== null && { key }),
    ...(spec.text !== undefined && { text: spec.text }),
    ...(spec.header !== undefined && { header: headerOf(spec.header) }),
    ...(json !== undefined && { json }),
  }
}

function readRange(
  name: string,
  fromText: string | undefined,
  untilText: string | undefined,
  refuse: Refuse,
): LetterFilter['died'] {
  const at = (bound: 'from' | 'until', text: string | undefined): Instant | undefined => {
    if (text === undefined) return undefined
    const instant = parseInstant(text)
    if (instant === undefined) refuse(`${name}_${bound}`, 'is not an RFC 3339 time')
    return instant === undefined ? undefined : Math.max(instantMin, Math.min(instant, instantMax))
  }
  const [from, until] = [at('from', fromText), at('until', untilText)]
  if (from !== undefined && until !== undefined && from > until) {
    refuse(`${name}_from`, `is after ${name}_until: nothing can match`)
  }
  return from === undefined && until === undefined
    ? undefined
    : { ...(from !== undefined && { from }), ...(until !== undefined && { until }) }
}

/** Only what the counts can tell. */
export async function readCountedFilter(
  spec: CountedSpec,
  where: string,
  storage: () => Pick<StoreReads, 'listQueues'>,
): Promise<CountedFilter> {
  const faults: FieldFault[] = []
  const counted = readCounted(
    spec,
    (field, message) => void faults.push({ field: `${where}.${field}`, message }),
  )
  for (const field of ['retry_count_min', 'retry_count_max'] as const) {
    const most = field === 'retry_count_min' ? redrivesCounted : redrivesCounted - 1
    if ((spec[field] ?? 0) > most) {
      const message = `is at most ${most} here: letters that came back ${redrivesCounted} times or oftener are counted as one`
      faults.push({ field: `${where}.${field}`, message })
    }
  }
  if (faults.length > 0) throw new InvalidRequest(faults)
  return withQueues(counted, spec, storage)
}

type Refuse = (field: string, message: string) => void

function readCounted(spec: CountedSpec, refuse: Refuse): CountedFilter {
  const statuses = listOf(spec.status)
  for (const status of statuses ?? []) {
    if (!isLetterStatus(status)) refuse('status', `must be one of ${letterStatuses.join(', ')}`)
  }
  const { retry_count_min: min, retry_count_max: max } = spec
  if (min !== undefined && max !== undefined && min > max) {
    refuse('retry_count_min', 'is more than retry_count_max: nothing can match')
  }
  const queues = listOf(spec.queue)
  const reasons = listOf(spec.reason)
  const slugs = listOf(spec.slug)
  const errorClasses = listOf(spec.error_class)
  const groupIds = listOf(spec.group)
  const origins = listOf(spec.origin)
  return {
    ...(queues !== undefined && { queues }),
    ...(statuses !== undefined && { states: statuses.filter(isLetterStatus).flatMap(statesOf) }),
    ...(reasons !== undefined && { reasons }),
    ...(slugs !== undefined && { slugs }),
    ...(errorClasses !== undefined && { errorClasses }),
    ...(groupIds !== undefined && { groupIds }),
    ...(origins !== undefined && { origins }),
    ...((min !== undefined || max !== undefined) && {
      redrives: { ...(min !== undefined && { min }), ...(max !== undefined && { max }) },
    }),
  }
}

/** A class is its queues, as they are now. Given with queues: those of them that are of the class. */
async function withQueues<F extends CountedFilter>(
  counted: F,
  spec: Pick<CountedSpec, 'class'>,
  storage: () => Pick<StoreReads, 'listQueues'>,
): Promise<F> {
  const classes = listOf(spec.class)
  if (classes === undefined) return counted
  const ofClass = await queuesOfClasses(classes, storage())
  const queues =
    counted.queues === undefined ? ofClass : counted.queues.filter((name) => ofClass.includes(name))
  return { ...counted, queues }
}

export async function queuesOfClasses(
  classes: readonly string[],
  storage: Pick<StoreReads, 'listQueues'>,
): Promise<string[]> {
  const found: string[] = []
  for await (const queue of allQueues(storage))
    if (classes.includes(queue.letterClass)) found.push(queue.name)
  return found
}

/** In steps: there may be many. */
export async function* allQueues(storage: Pick<StoreReads, 'listQueues'>) {
  const countMax = 1_000
  for (let from: string | undefined; ; ) {
    const page = await storage.listQueues({ ...(from !== undefined && { from }), countMax })
    const last = page.at(-1)?.name
    // The name to go on from is given again.
    for (const queue of page) if (queue.name !== from) yield queue
    if (page.length < countMax || last === undefined) return
    from = last
  }
}

function readJson(text: string | undefined, refuse: Refuse): LetterFilter['json'] {
  if (text === undefined) return undefined
  const test = parseJsonTest(text)
  if (!('problem' in test)) return test
  refuse('json', test.problem)
  return undefined
}

/** Cut at the first `=`: a name with one in it cannot be asked for. */
function headerOf(text: string): NonNullable<LetterFilter['header']> {
  const cut = text.indexOf('=')
  return cut < 0 ? { name: text } : { name: text.slice(0, cut), value: text.slice(cut + 1) }
}

function listOf<T extends string | number>(value: T | readonly T[] | undefined): readonly T[] | undefined {
  return value === undefined ? undefined : Array.isArray(value) ? [...new Set(value as T[])] : [value as T]
}

/** The same filter in the names of the wire, for those who want to see what was chosen. */
export function viewFilter(filter: LetterFilter): FilterView {
  const range = (name: 'died' | 'updated' | 'last_failed', value: LetterFilter['died']) => ({
    ...(value?.from !== undefined && { [`${name}_from`]: formatInstant(value.from) }),
    ...(value?.until !== undefined && { [`${name}_until`]: formatInstant(value.until) }),
  })
  const { key, header, json, redrives } = filter
  const keyText = key === undefined ? null : textOf(key)
  return {
    ...(filter.queues !== undefined && { queue: [...filter.queues] }),
    ...(filter.states !== undefined && { status: [...new Set(filter.states.map(letterStatus))] }),
    ...(filter.reasons !== undefined && { reason: [...filter.reasons] }),
    ...(filter.slugs !== undefined && { slug: [...filter.slugs] }),
    ...(filter.errorClasses !== undefined && { error_class: [...filter.errorClasses] }),
    ...(filter.groupIds !== undefined && { group: [...filter.groupIds] }),
    ...(filter.origins !== undefined && { origin: [...filter.origins] }),
    ...(redrives?.min !== undefined && { retry_count_min: redrives.min }),
    ...(redrives?.max !== undefined && { retry_count_max: redrives.max }),
    ...range('died', filter.died),
    ...range('updated', filter.updated),
    ...range('last_failed', filter.lastFailed),
    ...(key !== undefined && (keyText === null ? { key_base64: base64Of(key) } : { key: keyText })),
    ...(filter.text !== undefined && { text: filter.text }),
    ...(header !== undefined && {
      header: header.value === undefined ? header.name : `${header.name}=${header.value}`,
    }),
    ...(json !== undefined && { json: `${formatPath(json.path)}=${formatValue(json.value)}` }),
  }
}

function formatValue(value: NonNullable<LetterFilter['json']>['value']): string {
  return typeof value === 'object' && value !== null ? value.number : JSON.stringify(value)
}

function formatPath(path: readonly (string | number)[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `[${JSON.stringify(step)}]`))
  return `$${steps.join('')}`
}
