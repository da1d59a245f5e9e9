/** The body of the redrive of one letter, which may have an edited version of it. */
import { type Static, Type } from 'typebox'
import { findText } from '../../../core/text/json-text.ts'
import type { LetterChanges } from '../../../letters/letters.ts'
import { createBodyReader } from '../../http/bodies/body-reader.ts'
import { component } from '../../http/openapi/annotations.ts'
import {
  checkMetadataBytes,
  HeaderSpec,
  keySpec,
  payloadSpec,
  readContent,
  readHeaders,
  readKey,
} from '../values/content-spec.ts'
import { RequiredReason } from '../values/reason.ts'
import { nullable, queueName } from '../values/schemas.ts'

export const redriveFields = {
  target: Type.Optional(
    queueName('The queue to send to instead of the origin of the letter. A dead queue is refused.'),
  ),
  include_dead: Type.Optional(Type.Boolean({ description: 'Also redrives DEAD letters. Default false.' })),
  reason: Type.Optional(RequiredReason),
}

const EditSpec = component(
  'LetterEditSpec',
  Type.Object(
    {
      payload: Type.Optional(payloadSpec('The new payload.')),
      key: Type.Optional(nullable(keySpec('The new message key.'), 'The new message key; null: no key.')),
      headers: Type.Optional(
        Type.Array(HeaderSpec, {
          maxItems: 1_000,
          description: 'The new headers, which replace all headers.',
        }),
      ),
    },
    {
      additionalProperties: false,
      minProperties: 1,
      description: 'Sends an edited version. Omitted fields are as in the letter.',
    },
  ),
)
const EditNumber = Type.Integer({
  minimum: 1,
  maximum: 2 ** 31 - 1,
  description: 'Sends the edited version with this number again.',
})

export const RedriveBody = Type.Object(
  { ...redriveFields, edit: Type.Optional(Type.Union([EditSpec, EditNumber])) },
  { additionalProperties: false },
)

/** `edit`: the changes of a new version, the number of an earlier one, or null for the letter as it is. */
export type RedriveRequest = Readonly<
  Omit<Static<typeof RedriveBody>, 'edit'> & { edit: LetterChanges | number | null }
>

export const redriveBodyReader = createBodyReader(
  'letters.redrive',
  RedriveBody,
  ({ body, text }): RedriveRequest => {
    const { edit = null } = body
    return { ...body, edit: typeof edit === 'object' && edit !== null ? readEdit(edit, text) : edit }
  },
)

function readEdit({ payload, key, headers }: Static<typeof EditSpec>, text: string): LetterChanges {
  const readJsonText = () => findText(text, ['edit', 'payload', 'json']) ?? 'null'
  const changes: LetterChanges = {
    ...(payload !== undefined && { payload: readContent('body.edit.payload', payload, readJsonText) }),
    ...(key !== undefined && { key: key === null ? null : readKey('body.edit.key', key) }),
    ...(headers !== undefined && { headers: readHeaders('body.edit.headers', headers) }),
  }
  checkMetadataBytes('body.edit', changes.key ?? null, changes.headers ?? [])
  return changes
}
