import { type Static, Type } from 'typebox'
import { errorCodes, KnownError } from '../../errors.ts'
import type { Dialect } from '../http/answers/dialect.ts'
import { describedWith } from '../http/openapi/annotations.ts'
import { InvalidRequest } from '../http/validation/invalid-request.ts'
import { checkJsonSize, plainJsonValuesMax } from '../http/wire/json-size.ts'
import { decodeJson, parseJson } from '../http/wire/parse-json.ts'

export const ErrorBody = Type.Object({
  error: Type.Object({
    code: describedWith(
      { enum: errorCodes },
      Type.String({ description: 'Code for programs: one of the codes in docs/errors.md.' }),
    ),
    message: Type.String({ description: 'For people: why this request failed.' }),
    hint: Type.String({ description: 'For people: what to do about it.' }),
    request_id: Type.String({ description: 'Id of the request, which the log also shows.' }),
    details: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), {
        description: 'One entry per invalid field.',
      }),
    ),
  }),
})

type ErrorBody = Static<typeof ErrorBody>

/** Redrive's own API at `/api/v1`, and all paths that no other dialect owns. */
export const v1: Dialect & Required<Pick<Dialect, 'checkMediaType'>> = {
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

  readErrorCode: (body) => (JSON.parse(body) as ErrorBody).error.code,

  prepare: ({ params }) => {
    const named = params as { name?: string }
    // Queue names contain no tilde, so it marks names that a URL cannot contain, such as `..`.
    if (named.name?.startsWith('~')) named.name = named.name.slice(1)
  },

  checkMediaType: (request) => {
    const mediaType = request.mediaType ?? 'application/json'
    if (mediaType !== 'application/json' && !mediaType.endsWith('+json')) {
      throw new KnownError(
        'UNSUPPORTED_MEDIA_TYPE',
        `a body of type ${mediaType} is not supported; send application/json`,
      )
    }
  },
  parseBody: (bytes) => {
    if (bytes.length === 0) return undefined
    checkJsonSize(bytes, plainJsonValuesMax)
    return parseJson(decodeJson(bytes))
  },
}
