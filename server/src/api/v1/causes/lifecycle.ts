/** Routes by which a person decides about a group: acknowledge, mute, resolve, reopen. */
import { Type } from 'typebox'
import { createAttribution } from '../../http/attribution.ts'
import { route } from '../../http/route.ts'
import { InvalidRequest } from '../../http/validation/invalid-request.ts'
import { parseInstant } from '../../http/wire/wire-time.ts'
import { v1 } from '../dialect.ts'
import { Reason } from '../values/reason.ts'
import { GroupParams, GroupReport, showGroup } from './show.ts'

const noteMax = 1_000

export const Note = Type.Optional(
  Type.String({ maxLength: noteMax, description: 'A note for other people, shown with the state.' }),
)

const summaries = {
  acknowledge: 'Acknowledges a group: somebody works on it.',
  resolve: 'Resolves a group. The next letter of the group makes it regressed.',
  reopen: 'Opens a group again.',
}
const states = { acknowledge: 'acknowledged', resolve: 'resolved', reopen: 'open' } as const

export const Until = Type.String({
  maxLength: 64,
  description: 'Until when, as an RFC 3339 time in the future.',
  examples: ['2026-01-02T03:04:05Z'],
})

/** Refuses a time that is not in the future. */
export function parseUntil(text: string, now: number): number {
  const until = parseInstant(text)
  if (until === undefined) {
    throw new InvalidRequest([{ field: 'body.until', message: 'must be an RFC 3339 time' }])
  }
  if (until > now) return until
  throw new InvalidRequest([{ field: 'body.until', message: 'must be in the future' }])
}

export const lifecycleRoutes = [
  ...(['acknowledge', 'resolve', 'reopen'] as const).map((action) =>
    route({
      method: 'POST',
      path: `/api/v1/groups/{id}/${action}`,
      operationId: `${action}Group`,
      errors: ['GROUP_NOT_FOUND'],
      permission: 'group.write',
      summary: summaries[action],
      tag: 'groups',
      dialect: v1,
      isBodyOptional: true,
      schema: {
        params: GroupParams,
        body: Type.Object({ note: Note, reason: Reason }, { additionalProperties: false }),
        response: { 200: GroupReport },
      },
      handler: async (request, _reply, context) => {
        const { note = '', reason } = request.body
        const decision = { state: states[action], mutedUntil: null, note }
        const attribution = createAttribution(request, reason)
        return showGroup(
          await context.letters().decideGroup(request.params.id, decision, attribution),
          context,
        )
      },
    }),
  ),

  route({
    method: 'POST',
    path: '/api/v1/groups/{id}/mute',
    operationId: 'muteGroup',
    errors: ['GROUP_NOT_FOUND'],
    permission: 'group.write',
    summary: 'Mutes a group until a time. Then it is open again.',
    tag: 'groups',
    dialect: v1,
    schema: {
      params: GroupParams,
      body: Type.Object({ until: Until, note: Note, reason: Reason }, { additionalProperties: false }),
      response: { 200: GroupReport },
    },
    handler: async (request, _reply, context) => {
      const { until, note = '', reason } = request.body
      const mutedUntil = parseUntil(until, context.clock.now())
      const decision = { state: 'muted', mutedUntil, note } as const
      const attribution = createAttribution(request, reason)
      return showGroup(await context.letters().decideGroup(request.params.id, decision, attribution), context)
    },
  }),
]
