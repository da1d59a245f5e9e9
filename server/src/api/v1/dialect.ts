import { Type } from 'typebox'
import { KnownError } from '../../errors.ts'
import type { Dialect } from '../http/dialect.ts'
import { InvalidRequest } from '../http/validation/invalid-request.ts'
import { parseJson } from '../http/wire/parse-json.ts'

export const ErrorBody = Type.Object({
  error: Type.Object({
    code: Type.String({ description: 'For machines. One of the codes in docs/errors.md.' }),
    message: Type.String({ description: 'For people: what is wrong with this request.' }),
    hint: Type.String({ description: 'For people: the way out.' }),
    request_id: Type.String({ description: 'Stands in the log too.' }),
    details: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), {
        description: 'One per field that is wrong.',
      }),
    ),
  }),
})

/** Ours: `/api/v1`, and every path that no other dialect claims. */
export const v1: Dialect = {
  name: 'v1',
  ownsPath: () => true,
  errorSchema: ErrorBody,
  errorContentType: 'application/json',

  renderError: (error, { requestId }) => ({
    status: error.status,
    contentType: 'application/json; charset=utf-8',
    body: JSON.stringify({
      error: {
        code: error.code,
        message: error.publicMessage,
        hint: error.hint,
        request_id: requestId,
        ...(error instanceof InvalidRequest && { details: error.faults }),
      },
    }),
  }),

  prepare: ({ params }) => {
    const named = params as { name?: string }
    // No queue has a tilde in its name: what follows one is a name that a URL could not have as it is.
    if (named.name?.startsWith('~')) named.name = named.name.slice(1)
  },

  parseBody: (bytes, request) => {
    const mediaType = request.mediaType ?? 'application/json'
    if (mediaType !== 'application/json' && !mediaType.endsWith('+json')) {
      throw new KnownError('UNSUPPORTED_MEDIA_TYPE', `a body of type ${mediaType} cannot be read here`)
    }
    return parseJson(bytes)
  },
}
