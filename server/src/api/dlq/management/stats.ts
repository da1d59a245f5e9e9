import { Type } from 'typebox'
import { usPerSecond } from '../../../core/instant.ts'
import { route } from '../../http/route.ts'
import { dlqManagement, prefix } from '../dialects.ts'
import { logEvent } from './log-event.ts'
import { openStates } from './open-letters.ts'
import { Success, createSuccess } from './success.ts'

const usPerDay = 24 * 3_600 * usPerSecond

export const statsRoute = route({
  method: 'GET',
  path: `${prefix}/stats`,
  permission: 'letter.read',
  summary:
    'How many dead letters wait for somebody, by reason, and how many of them died in the last 24 hours.',
  tag: 'dlq',
  dialect: dlqManagement,
  schema: {
    querystring: Type.Object({}, { additionalProperties: false }),
    response: {
      200: Success(
        Type.Object({
          total: Type.Integer(),
          by_reason: Type.Record(Type.String(), Type.Integer()),
          last_24h: Type.Integer(),
        }),
      ),
    },
  },
  handler: async (request, _reply, context) => {
    const startedMs = performance.now()
    const letters = context.letters()
    const [counts, last_24h] = await Promise.all([
      letters.count({ filter: { states: openStates }, by: ['slug'] }),
      letters.countOpenSince(context.clock.now() - usPerDay),
    ])
    // From the same rows as the parts, so that these always add up to it.
    const total = counts.reduce((sum, { count }) => sum + count, 0)
    const by_reason = Object.fromEntries(counts.map(({ slug = 'unknown', count }) => [slug, count]))
    logEvent('dlq.stats', startedMs, { total, last_24h, distinct_reasons: counts.length }, request, context)
    return createSuccess({ total, by_reason, last_24h })
  },
})
