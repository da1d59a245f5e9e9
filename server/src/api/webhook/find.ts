/** Finds the objects that a request names, and checks its tokens, in the order of the contract. */
import type { FastifyRequest } from 'fastify'
import { KnownError } from '../../errors.ts'
import type { Channel, Consumer } from '../../storage/contract/webhooks.ts'
import type { ApiContext } from '../context.ts'
import { checkToken } from './requests.ts'

export function channelNotFound(id: string): KnownError {
  return new KnownError('CHANNEL_NOT_FOUND', `channel ${id} does not exist`)
}

export function consumerNotFound(channelId: string, id: string): KnownError {
  return new KnownError('CONSUMER_NOT_FOUND', `channel ${channelId} has no consumer ${id}`)
}

export async function findChannel({ storage }: ApiContext, id: string): Promise<Channel> {
  const channel = await storage().getChannel(id)
  if (channel === null) throw channelNotFound(id)
  return channel
}

export async function findConsumer(
  { storage }: ApiContext,
  channelId: string,
  id: string,
): Promise<Consumer> {
  const consumer = await storage().getConsumer(channelId, id)
  if (consumer === null) throw consumerNotFound(channelId, id)
  return consumer
}

/**
 * Checks both tokens: channel unknown, channel token, consumer unknown, consumer token. `unknown`: the code
 * for a consumer that does not exist, which differs between calls.
 */
export async function authorizeConsumer(
  request: FastifyRequest,
  context: ApiContext,
  { channelId, consumerId }: Readonly<{ channelId: string; consumerId: string }>,
  unknown: 'CONSUMER_UNKNOWN' | 'CONSUMER_NOT_FOUND',
): Promise<Consumer> {
  checkToken(request, 'channel', await findChannel(context, channelId))
  const consumer = await context.storage().getConsumer(channelId, consumerId)
  if (consumer === null) throw new KnownError(unknown, `channel ${channelId} has no consumer ${consumerId}`)
  checkToken(request, 'consumer', consumer)
  return consumer
}
