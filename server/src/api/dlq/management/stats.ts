import { Type } from 'typebox'
import { usPerSecond } from '../../../core/time/instant.ts'
import { route } from '../../http/route.ts'
import { dlqManagement, prefix } from '../dialects.ts'
import { createSuccess, logEvent, Success } from './answer.ts'
import { openStates } from './list.ts'

const usPerDay = 24 * 3_600 * usPerSecond

export const statsRoute = route({
  method: 'GET',
  path: `${prefix}/stats`,
  operationId: 'dlqStats',
  permission: 'letter.read',
  summary: 'Counts the open dead letters in total, by reason, and those that died in the last 24 hours.',
  tag: 'dlq',
  dialect: dlqManagement,
  schema: {
    querystring: Type.Object({}, { additionalProperties: false }),
    response: {
      200: Success(
        Type.Object({
          total: Type.Integer({ description: 'Number of open dead letters.' }),
          by_reason: Type.Record(Type.String(), Type.Integer(), {
            description: 'Number of open dead letters by reason, as the list shows it.',
          }),
          last_24h: Type.Integer({ description: 'Number of open letters that died in the last 24 hours.' }),
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
    // Summed from the same rows as `by_reason`, so that the parts always add up to the total.
    const total = counts.reduce((sum, { count }) => sum + count, 0)
    const by_reason = Object.fromEntries(counts.map(({ slug = 'unknown', count }) => [slug, count]))
    logEvent('dlq.stats', startedMs, { total, last_24h, distinct_reasons: counts.length }, request, context)
    return createSuccess({ total, by_reason, last_24h })
  },
})
