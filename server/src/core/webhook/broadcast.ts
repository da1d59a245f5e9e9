/** Decides whether a broadcast is accepted, in the order of the contract. */

import { isSameToken } from './token.ts'

/** Faults that are known before the store is asked. */
export type BroadcastFault =
  | 'id-unusable'
  | 'payload-empty'
  | 'payload-unreadable'
  | 'date-unreadable'
  | 'date-early'

export type BroadcastRefusal =
  | 'channel-missing'
  | 'channel-token'
  | 'producer-missing'
  | 'producer-token'
  | BroadcastFault
  | 'id-taken'

export type BroadcastTokens = Readonly<{
  channelToken: string | null
  producerId: string | null
  producerToken: string | null
  fault: BroadcastFault | null
}>

type Tokened = Readonly<{ token: string }>

/** Undefined: the broadcast is accepted, unless its message id is taken. */
export function findBroadcastRefusal(
  { channelToken, producerToken, fault }: BroadcastTokens,
  channel: Tokened | undefined,
  producer: Tokened | undefined,
): BroadcastRefusal | undefined {
  if (channel === undefined) return 'channel-missing'
  if (!isSameToken(channel.token, channelToken)) return 'channel-token'
  if (producer === undefined) return 'producer-missing'
  if (!isSameToken(producer.token, producerToken)) return 'producer-token'
  return fault ?? undefined
}
