/**
 * The order of notifications. Each channel gets its notifications in the order in which they were queued:
 * a service that opens and closes incidents would otherwise keep an incident open whose end arrived before
 * its beginning. So only the oldest queued notification of a channel may be sent, on all servers together.
 */
import type { LetterId } from '../../ids/ids.ts'
import { addDuration, type Instant, usPerSecond } from '../../time/instant.ts'

export type LeasedNotification = Readonly<{ rootId: LetterId; channel: string }>

/** An item of the queue, also a leased one. `availableAt` null: it can be leased now, or is leased. */
export type QueuedNotification = LeasedNotification & Readonly<{ availableAt: Instant | null }>

export type OrderPlan<L extends LeasedNotification> = Readonly<{
  /** To be sent one after the other; lanes at the same time. */
  lanes: readonly (readonly L[])[]
  /** Wait for an older one, until then. */
  postponed: readonly Readonly<{ item: L; until: Instant }>[]
}>

/** How soon an item looks again whether the older one in front of it was sent. */
const lookAgainUs = usPerSecond

/** `queued`: all items of the queue, which includes the leased ones. */
export function planOrder<L extends LeasedNotification>(
  leased: readonly L[],
  queued: readonly QueuedNotification[],
  now: Instant,
): OrderPlan<L> {
  const lanes: L[][] = []
  const postponed: { item: L; until: Instant }[] = []
  const queuedByChannel = Map.groupBy(queued, ({ channel }) => channel)
  for (const [channel, items] of Map.groupBy(leased, (item) => item.channel)) {
    const own = items.toSorted(compareAge)
    const all = (queuedByChannel.get(channel) ?? []).toSorted(compareAge)
    const firstOther = own.findIndex(({ rootId }, at) => all[at]?.rootId !== rootId)
    const sent = firstOther < 0 ? own : own.slice(0, firstOther)
    if (sent.length > 0) lanes.push(sent)
    const blocking = all[sent.length]
    const until = Math.max(addDuration(now, lookAgainUs), blocking?.availableAt ?? 0)
    postponed.push(...own.slice(sent.length).map((item) => ({ item, until })))
  }
  return { lanes, postponed }
}

/** Ids increase in the order of a partition. */
function compareAge(a: LeasedNotification, b: LeasedNotification): number {
  return a.rootId < b.rootId ? -1 : a.rootId > b.rootId ? 1 : 0
}
