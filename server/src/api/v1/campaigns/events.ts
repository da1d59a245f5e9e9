/**
 * A campaign as it goes on, as server-sent events: the present state first, then every change, and `end` with the last
 * one. Each event is the whole state, so whoever comes back needs nothing from before.
 */
import { Readable } from 'node:stream'
import { Type } from 'typebox'
import type { Campaign } from '../../../letters/letters.ts'
import { abortWhenClientGone } from '../../http/client-gone.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { isEnded, viewCampaign } from './campaign-view.ts'
import { found } from './campaigns.ts'

/** Less than the minute after which proxies give a silent connection up. */
const heartbeatMs = 15_000
/** After a cut the client comes back then. */
const comeBackMs = 2_000

export const campaignEventRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/campaigns/{id}/events',
    permission: 'campaign.read',
    summary: 'Every change of a campaign until its end, as server-sent events.',
    tag: 'campaigns',
    dialect: v1,
    slowMs: Number.POSITIVE_INFINITY,
    schema: {
      params: Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) }),
      response: {
        200: {
          description:
            'Events `campaign` and, as the last one, `end`; the data of both is the campaign. Lines that begin with a colon only keep the connection open.',
          content: { 'text/event-stream': { schema: Type.String() } },
        },
        204: Type.Null({ description: 'For who has heard the end already.' }),
      },
    },
    handler: async (request, reply, context) => {
      const { id } = request.params
      const { campaigns } = context.letters()
      const campaign = found(id, await campaigns.get(id))
      // A browser that heard the end comes back all the same; only this tells it to stay away.
      if (isEnded(campaign) && request.headers['last-event-id'] === eventId(campaign))
        return reply.code(204).send()
      const ending = abortWhenClientGone(reply)
      const signal = AbortSignal.any([ending.signal, context.stopping])
      const onFailure = (error: unknown): void =>
        context.log.warn({ request_id: request.id, err: error }, 'a campaign could not be watched any more')
      const lines = Readable.from(events(campaigns.watch(id, signal), signal, onFailure), {
        objectMode: false,
      })
      return reply
        .header('content-type', 'text/event-stream; charset=utf-8')
        .header('cache-control', 'no-store')
        .header('x-accel-buffering', 'no')
        .send(lines)
    },
  }),
]

export async function* events(
  changes: AsyncIterable<Campaign>,
  signal: AbortSignal,
  onFailure: (error: unknown) => void,
): AsyncGenerator<string> {
  yield `retry: ${comeBackMs}\n\n`
  const iterator = changes[Symbol.asyncIterator]()
  try {
    let pending = iterator.next()
    // Looked at below; until then a failure must not count as one that nobody sees.
    pending.catch(() => undefined)
    while (!signal.aborted) {
      const change = await firstOf(pending, heartbeatMs, signal)
      if (change === 'silence') yield ': still here\n\n'
      else if (change === 'stop' || change.done) break
      else {
        yield eventText(change.value)
        if (isEnded(change.value)) return
        pending = iterator.next()
        pending.catch(() => undefined)
      }
    }
  } catch (error) {
    // The answer has begun, so it can only end: whoever listens comes back and hears what is so then.
    onFailure(error)
  } finally {
    // Not waited for: it may itself wait for the next change.
    void iterator.return?.().catch(() => undefined)
  }
}

function eventText(campaign: Campaign): string {
  const name = isEnded(campaign) ? 'end' : 'campaign'
  return `id: ${eventId(campaign)}\nevent: ${name}\ndata: ${JSON.stringify(viewCampaign(campaign))}\n\n`
}

function eventId(campaign: Campaign): string {
  return `${campaign.state}-${campaign.updatedAt}`
}

async function firstOf<T>(
  pending: Promise<T>,
  ms: number,
  signal: AbortSignal,
): Promise<T | 'silence' | 'stop'> {
  let timer: NodeJS.Timeout | undefined
  let onAbort = (): void => {}
  const silence = new Promise<'silence' | 'stop'>((resolve) => {
    timer = setTimeout(() => resolve('silence'), ms)
    onAbort = () => resolve('stop')
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([pending, silence])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}
