/** The body of a request that produces items: its schema, and the items that it becomes. */
import { type Static, Type } from 'typebox'
import { findText, splitElements, splitFields } from '../../../core/text/json-text.ts'
import type { NewItem } from '../../../storage/contract/items.ts'
import { createBodyReader } from '../../http/bodies/body-reader.ts'
import { component, describedWith } from '../../http/openapi/annotations.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { parseInstant } from '../../http/wire/wire-time.ts'
import {
  checkHeaderCount,
  checkMetadataBytes,
  HeaderSpec,
  keySpec,
  payloadSpec,
  readContent,
  readHeaders,
  readKey,
} from '../values/content-spec.ts'
import { parseDurationField } from '../values/duration.ts'

export const itemsMax = 1_000
const windowDefault = '24h'

const ItemSpec = component(
  'ItemSpec',
  Type.Object(
    {
      payload: Type.Optional(payloadSpec('The payload. Default: empty.')),
      kind: Type.Optional(Type.String({ maxLength: 1_000, description: 'Type of the item, for workers.' })),
      encoding: Type.Optional(
        Type.String({ maxLength: 1_000, description: 'Encoding of the payload, for workers.' }),
      ),
      reference: Type.Optional(Type.String({ maxLength: 2_000, description: 'A text of your choice.' })),
      key: Type.Optional(keySpec('The message key. Default: no key.')),
      headers: Type.Optional(
        Type.Array(HeaderSpec, { maxItems: 100, description: 'The headers of the message, in order.' }),
      ),
      priority: Type.Optional(
        Type.Integer({
          minimum: -1_000_000,
          maximum: 1_000_000,
          description: 'Items with a higher priority are leased first. Default 0.',
        }),
      ),
      attempts_max: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 65_536,
          description: 'Replaces attempts_max of the queue for this item. Default 0: the value of the queue.',
        }),
      ),
      available_at: Type.Optional(
        describedWith(
          { format: 'date-time' },
          Type.String({ maxLength: 64, description: 'The item is not leased before this RFC 3339 time.' }),
        ),
      ),
    },
    { additionalProperties: false },
  ),
)

export const QueueItemsBody = Type.Object(
  {
    items: Type.Array(ItemSpec, {
      minItems: 1,
      maxItems: itemsMax,
      description: 'The items, which are stored in order in one partition: all or none.',
    }),
    idempotency_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description:
          'A request with the same key within the window is executed once and gets the same answer. ' +
          'The same key with other items is refused.',
      }),
    ),
    idempotency_window: Type.Optional(
      Type.String({
        maxLength: 32,
        default: windowDefault,
        description: 'How long the key is remembered.',
      }),
    ),
  },
  { additionalProperties: false },
)

/** `once` is undefined without an idempotency key. */
export type ProduceRequest = Readonly<{
  items: readonly NewItem[]
  once: Readonly<{ key: string; windowUs: number }> | undefined
}>

export const queueItemsBodyReader = createBodyReader(
  'queue.items',
  QueueItemsBody,
  ({ body, text }): ProduceRequest => {
    const readWritten = createItemTexts(text)
    const items = body.items.map((item, index) => readItem(item, index, readWritten))
    checkHeaderCount('body.items', items)
    for (const [index, { key = null, headers = [] }] of items.entries()) {
      checkMetadataBytes(`body.items[${index}]`, key, headers)
    }
    const { idempotency_key: key, idempotency_window: window = windowDefault } = body
    const once =
      key === undefined ? undefined : { key, windowUs: parseDurationField('idempotency_window', window, 1) }
    return { items, once }
  },
)

/**
 * Returns a function that reads the JSON text of an item as it is written in the request. The body is split
 * only if an item has a JSON payload.
 */
function createItemTexts(text: string): (index: number) => string {
  let texts: readonly string[] | undefined
  return (index) => {
    texts ??= splitElements(new Map(splitFields(text)).get('items') ?? '[]')
    return texts[index] ?? '{}'
  }
}

function readItem(
  spec: Static<typeof ItemSpec>,
  index: number,
  readWritten: (index: number) => string,
): NewItem {
  const field = `body.items[${index}]`
  const readJsonText = () => findText(readWritten(index), ['payload', 'json']) ?? 'null'
  return {
    payload:
      spec.payload === undefined
        ? new Uint8Array()
        : readContent(`${field}.payload`, spec.payload, readJsonText),
    ...(spec.kind !== undefined && { kind: spec.kind }),
    ...(spec.encoding !== undefined && { encoding: spec.encoding }),
    ...(spec.reference !== undefined && { reference: spec.reference }),
    ...(spec.key !== undefined && { key: readKey(`${field}.key`, spec.key) }),
    ...(spec.headers !== undefined && { headers: readHeaders(`${field}.headers`, spec.headers) }),
    ...(spec.priority !== undefined && { priority: spec.priority }),
    ...(spec.attempts_max !== undefined && { attemptsMax: spec.attempts_max }),
    ...(spec.available_at !== undefined && {
      availableAt: parseAvailableAt(`${field}.available_at`, spec.available_at),
    }),
  }
}

function parseAvailableAt(field: string, text: string): number {
  const instant = parseInstant(text)
  if (instant !== undefined) return instant
  throw new InvalidRequest([{ field, message: 'is not an RFC 3339 time' }])
}
