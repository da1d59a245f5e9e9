/**
 * The progress of a campaign as server-sent events: its current state, then every change, and `end` with the
 * last state. Each event has the complete state, so a client that reconnects needs no earlier event.
 */
import { Readable } from 'node:stream'
import { Type } from 'typebox'
import type { Campaign } from '../../../letters/letters.ts'
import { abortOnDisconnect } from '../../http/connections/client-disconnect.ts'
import { route } from '../../http/route.ts'
import { v1 } from '../dialect.ts'
import { isEnded, viewCampaign } from './campaign-view.ts'
import { CampaignParams } from './campaigns.ts'
import { findCampaign } from './find-campaign.ts'

/** Shorter than the minute after which proxies close a silent connection. */
const heartbeatMs = 15_000
/** How long a client waits before it reconnects. */
const reconnectMs = 2_000

export const campaignEventRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/campaigns/{id}/events',
    operationId: 'watchCampaign',
    errors: ['CAMPAIGN_NOT_FOUND'],
    permission: 'campaign.read',
    summary: 'Streams every change of a campaign until its end as server-sent events.',
    tag: 'campaigns',
    dialect: v1,
    slowMs: Number.POSITIVE_INFINITY,
    answerKind: 'events',
    schema: {
      params: CampaignParams,
      response: {
        200: {
          description:
            'Events `campaign` and, as the last event, `end`. The data of both is the campaign. Lines that start with ' +
            'a colon only keep the connection open.',
          content: { 'text/event-stream': { schema: Type.String() } },
        },
        204: Type.Null({ description: 'The client has already received the last event.' }),
      },
    },
    handler: async (request, reply, context) => {
      const { id } = request.params
      const { campaigns } = context.letters()
      const campaign = await findCampaign({ campaigns }, id)
      // A browser reconnects even after the last event; only 204 stops it.
      if (isEnded(campaign) && request.headers['last-event-id'] === createEventId(campaign))
        return reply.code(204).send()
      const ending = abortOnDisconnect(reply)
      const signal = AbortSignal.any([ending.signal, context.stopping])
      const onFailure = (error: unknown): void =>
        context.log.warn(
          { request_id: request.id, err: error },
          'the events of a campaign ended with an error',
        )
      const lines = Readable.from(streamEvents(campaigns.watch(id, signal), signal, onFailure), {
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

export async function* streamEvents(
  changes: AsyncIterable<Campaign>,
  signal: AbortSignal,
  onFailure: (error: unknown) => void,
): AsyncGenerator<string> {
  yield `retry: ${reconnectMs}\n\n`
  const iterator = changes[Symbol.asyncIterator]()
  try {
    let pending = iterator.next()
    // Handled below. Until then a failure must not count as an unhandled rejection.
    pending.catch(() => undefined)
    while (!signal.aborted) {
      const change = await waitForFirst(pending, heartbeatMs, signal)
      if (change === 'heartbeat') yield ': still here\n\n'
      else if (change === 'stop' || change.done) break
      else {
        yield formatEvent(change.value)
        if (isEnded(change.value)) return
        pending = iterator.next()
        pending.catch(() => undefined)
      }
    }
  } catch (error) {
    // The answer has begun, so it can only end. The client reconnects and gets the current state.
    onFailure(error)
  } finally {
    // Not awaited: it may wait for the next change.
    void iterator.return?.().catch(() => undefined)
  }
}

function formatEvent(campaign: Campaign): string {
  const name = isEnded(campaign) ? 'end' : 'campaign'
  return `id: ${createEventId(campaign)}\nevent: ${name}\ndata: ${JSON.stringify(viewCampaign(campaign))}\n\n`
}

function createEventId(campaign: Campaign): string {
  return `${campaign.state}-${campaign.updatedAt}`
}

async function waitForFirst<T>(
  pending: Promise<T>,
  ms: number,
  signal: AbortSignal,
): Promise<T | 'heartbeat' | 'stop'> {
  let timer: NodeJS.Timeout | undefined
  let onAbort = (): void => {}
  const heartbeat = new Promise<'heartbeat' | 'stop'>((resolve) => {
    timer = setTimeout(() => resolve('heartbeat'), ms)
    onAbort = () => resolve('stop')
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([pending, heartbeat])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}
