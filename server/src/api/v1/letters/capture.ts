/** The route that captures failed messages of other systems as dead letters. */
import { Type } from 'typebox'
import { takeBody } from '../../http/bodies/body-reader.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { CaptureBody, captureBodyReader } from './capture-body.ts'

export const captureRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/letters',
    operationId: 'captureLetters',
    errors: ['QUEUE_NOT_FOUND', 'DEAD_QUEUE_INVALID'],
    permission: 'letter.capture',
    summary:
      'Captures dead letters. A letter whose source_id already exists in the dead queue stays unchanged.',
    tag: 'letters',
    dialect: v1,
    bodyReader: captureBodyReader,
    schema: {
      body: CaptureBody,
      response: {
        200: Type.Object({
          letters: Type.Array(
            Type.Object({
              id: Type.String({ description: 'Id of the letter.' }),
              is_new: Type.Boolean({
                description: 'False if the letter already existed, possibly discarded.',
              }),
              problems: Type.Array(Type.String(), {
                description:
                  'Fields of the envelope that could not be read, are unknown, or were stored with changes.',
              }),
            }),
            { description: 'One entry per envelope, in the order of the request.' },
          ),
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { queue, letters } = takeBody(request, captureBodyReader)
      const captured = await context.letters().capture(
        queue,
        letters.map(({ letter }) => letter),
      )
      return {
        letters: captured.map(({ letterId, isNew }, index) => ({
          id: letterId,
          is_new: isNew,
          problems: [...(letters[index]?.problems ?? [])],
        })),
      }
    },
  }),
]
