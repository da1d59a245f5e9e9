/** A filter in answers. */
import { type Static, Type } from 'typebox'
import { letterStatuses, toLetterStatus } from '../../../ops/metrics/letter-status.ts'
import type { LetterFilter } from '../../../storage/contract/letters.ts'
import { component, describedWith } from '../../http/openapi/annotations.ts'
import { formatInstant } from '../../http/wire/wire-time.ts'
import { viewBytes } from '../values/content-view.ts'

const Texts = Type.Optional(Type.Array(Type.String()))
const Text = Type.Optional(Type.String())
const Time = Type.Optional(describedWith({ format: 'date-time' }, Type.String()))
const Count = Type.Optional(Type.Integer())

/**
 * The fields of `FilterSpec` without its limits: a class is shown as its queues, an id as the ids of its
 * letters, and a path can be longer than it was given.
 */
export const FilterView = component(
  'LetterFilter',
  Type.Object(
    {
      queue: Texts,
      namespace: Texts,
      status: Type.Optional(Type.Array(Type.Enum([...letterStatuses]))),
      error_code: Texts,
      slug: Texts,
      error_class: Texts,
      group_id: Type.Optional(Type.Array(Type.Integer())),
      cause_id: Texts,
      origin: Texts,
      retry_count_min: Count,
      retry_count_max: Count,
      dead_lettered_from: Time,
      dead_lettered_until: Time,
      updated_from: Time,
      updated_until: Time,
      last_failed_from: Time,
      last_failed_until: Time,
      id: Texts,
      source_id: Texts,
      reference: Texts,
      trace_id: Texts,
      payload_contains: Text,
      key_text: Text,
      key_base64: Text,
      message: Text,
      header: Text,
      json: Text,
    },
    { additionalProperties: false },
  ),
)
export type FilterView = Static<typeof FilterView>

export function viewFilter(filter: LetterFilter): FilterView {
  return { ...viewCounted(filter), ...viewSearched(filter) }
}

function viewCounted({ retryCount, ...filter }: LetterFilter): FilterView {
  return {
    ...(filter.queues !== undefined && { queue: [...filter.queues] }),
    ...(filter.namespaces !== undefined && { namespace: [...filter.namespaces] }),
    ...(filter.states !== undefined && { status: [...new Set(filter.states.map(toLetterStatus))] }),
    ...(filter.errorCodes !== undefined && { error_code: [...filter.errorCodes] }),
    ...(filter.slugs !== undefined && { slug: [...filter.slugs] }),
    ...(filter.errorClasses !== undefined && { error_class: [...filter.errorClasses] }),
    ...(filter.groupIds !== undefined && { group_id: [...filter.groupIds] }),
    ...(filter.causes !== undefined && { cause_id: [...filter.causes] }),
    ...(filter.origins !== undefined && { origin: [...filter.origins] }),
    ...(retryCount?.min !== undefined && { retry_count_min: retryCount.min }),
    ...(retryCount?.max !== undefined && { retry_count_max: retryCount.max }),
  }
}

function viewSearched({ key, header, json, ...filter }: LetterFilter): FilterView {
  return {
    ...viewRange('dead_lettered', filter.died),
    ...viewRange('updated', filter.updated),
    ...viewRange('last_failed', filter.lastFailed),
    ...viewIds(filter),
    ...(key !== undefined && viewKey(key)),
    ...(filter.text !== undefined && { message: filter.text }),
    ...(header !== undefined && {
      header: header.value === undefined ? header.name : `${header.name}=${header.value}`,
    }),
    ...(json !== undefined && { json: `${formatPath(json.path)}=${formatValue(json.value)}` }),
  }
}

function viewIds(filter: LetterFilter): FilterView {
  return {
    ...(filter.letterIds !== undefined && { id: [...filter.letterIds] }),
    ...(filter.sourceIds !== undefined && { source_id: [...filter.sourceIds] }),
    ...(filter.references !== undefined && { reference: [...filter.references] }),
    ...(filter.traceIds !== undefined && { trace_id: [...filter.traceIds] }),
    ...(filter.payloadText !== undefined && { payload_contains: filter.payloadText }),
  }
}

function viewRange(name: 'dead_lettered' | 'updated' | 'last_failed', range: LetterFilter['died']) {
  return {
    ...(range?.from !== undefined && { [`${name}_from`]: formatInstant(range.from) }),
    ...(range?.until !== undefined && { [`${name}_until`]: formatInstant(range.until) }),
  }
}

function viewKey(key: Uint8Array): Pick<FilterView, 'key_text' | 'key_base64'> {
  const shown = viewBytes(key)
  return 'text' in shown ? { key_text: shown.text } : { key_base64: shown.base64 }
}

function formatValue(value: NonNullable<LetterFilter['json']>['value']): string {
  return typeof value === 'object' && value !== null ? value.number : JSON.stringify(value)
}

/** As `parseJsonPath` reads it. */
export function formatPath(path: readonly (string | number | null)[]): string {
  return `$${path.map(formatStep).join('')}`
}

/** Null stands for every field or element. */
function formatStep(step: string | number | null): string {
  if (step === null) return '[*]'
  return typeof step === 'number' ? `[${step}]` : `[${JSON.stringify(step)}]`
}
