/** The route that discards named letters. `undo.ts` has the routes that take a discard or a redrive back. */

import { Type } from 'typebox'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { RequiredReason } from '../values/reason.ts'
import { changeEach, DoneView, namedFields, resolveIds, viewDone } from './letter-results.ts'

const Results = Type.Array(DoneView, { description: 'The result of each letter.' })
const Refused = Type.Integer({ description: 'Number of letters that were not changed.' })

export const discardRoutes = [
  route({
    method: 'POST',
    path: '/api/v1/letters/discard',
    operationId: 'discardLetters',
    errors: ['SELECTION_CHANGED'],
    permission: 'letter.discard',
    summary:
      'Discards letters. They are kept until their retention ends, so that capturing them again has no effect. ' +
      'Partial success: the answer has a result for each letter.',
    tag: 'letters',
    dialect: v1,
    schema: {
      body: Type.Object({ ...namedFields, reason: RequiredReason }, { additionalProperties: false }),
      response: {
        200: Type.Object({
          letters: Results,
          discarded: Type.Integer({ description: 'Number of letters that were discarded.' }),
          refused: Refused,
        }),
      },
    },
    handler: async (request, _reply, context) => {
      const { reason, ...named } = request.body
      const letters = context.letters()
      const done = await changeEach(await resolveIds(named, letters), (letterIds) =>
        letters.discard(letterIds, createAttribution(request, reason)),
      )
      const results = done.map(({ id, result }) =>
        viewDone(id, result?.isDiscarded ?? false, result?.refusal ?? null),
      )
      const discarded = results.filter(({ is_done }) => is_done).length
      return { letters: results, discarded, refused: results.length - discarded }
    },
  }),
]
