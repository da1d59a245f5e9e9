/**
 * Redrives to a topic that several consumer groups read. Groups that did not fail would process the record
 * again, so such a redrive needs a target that says how to avoid it, or force.
 */
import type { Origin } from '../../../core/items/item.ts'
import { nameReplayQueue, parseReplayQueue, type ReplayMode } from '../../../core/kafka/replay-queues.ts'
import { KnownError } from '../../../errors.ts'
import type { CampaignSpec } from '../../../letters/letters.ts'
import type { ApiContext } from '../../context.ts'

export type SharedTopic = Readonly<{ cluster: string; topic: string; groups: readonly string[] }>
type Place = Readonly<{ cluster: string; topic: string; group: string | null }>

/** The topics that other groups read too, if the redrive would go to the topics themselves. */
export async function findSharedTopics(
  origins: readonly (Origin | null)[],
  target: string | null,
  { kafka }: ApiContext,
): Promise<readonly SharedTopic[]> {
  const places = new Map<string, Place>()
  for (const origin of origins) {
    const place = origin === null ? undefined : toPlace(origin, target, kafka)
    if (place !== undefined) places.set(`${place.cluster}\n${place.topic}\n${place.group}`, place)
  }
  const found = await Promise.all(
    [...places.values()].map(async ({ cluster, topic, group }) => {
      const readers = await kafka.listReaders(cluster, topic)
      const others = group === null && readers.length === 1 ? [] : readers.filter((each) => each !== group)
      return { cluster, topic, groups: others }
    }),
  )
  return found.filter(({ groups }) => groups.length > 0)
}

function toPlace(origin: Origin, target: string | null, kafka: ApiContext['kafka']): Place | undefined {
  const { cluster, name: topic, group } = origin
  if (origin.kind !== 'kafka' || cluster === null) return undefined
  const settings = kafka.clusters.find(({ name }) => name === cluster)
  if (settings === undefined) return undefined
  return findMode(settings, target) === 'topic' ? { cluster, topic, group } : undefined
}

/** Undefined: the redrive does not go to this cluster. */
function findMode(
  { name, replay }: Readonly<{ name: string; replay: ReplayMode }>,
  target: string | null,
): ReplayMode | undefined {
  const request = parseReplayQueue(target ?? nameReplayQueue(name, 'default'))
  if (request?.cluster !== name) return undefined
  return request.mode === 'default' ? replay : request.mode
}

const shownMax = 5

export function describeSharedTopic({ cluster, topic, groups }: SharedTopic): string {
  const more = groups.length > shownMax ? ` and ${groups.length - shownMax} more` : ''
  const targets = (['side-topic', 'header', 'forced'] as const).map((mode) => nameReplayQueue(cluster, mode))
  return (
    `other consumer groups read topic ${topic} and would process its records again: ` +
    `${groups.slice(0, shownMax).join(', ')}${more}. Possible targets: ${targets.join(', ')}`
  )
}

/** Rejects with KAFKA_TOPIC_SHARED if the redrive of one of these letters would reach other groups. */
export async function refuseSharedTopics(
  letterIds: readonly (string | null)[],
  target: string | null,
  context: ApiContext,
): Promise<void> {
  if (context.kafka.clusters.length === 0) return
  const ids = letterIds.filter((id) => id !== null)
  const letters = await context.storage().getLetters(ids, 'head')
  const origins = letters.map(({ origin }) => origin)
  const [shared] = await findSharedTopics(origins, target, context)
  if (shared !== undefined) throw new KnownError('KAFKA_TOPIC_SHARED', describeSharedTopic(shared))
}

const sampleMax = 200

/**
 * Rejects like `refuseSharedTopics`, by some of the letters of a campaign. Letters that the sample misses
 * return with the same reason when they are about to be sent.
 */
export async function refuseSharedSample(
  { selection, target }: Pick<CampaignSpec, 'selection' | 'target'>,
  context: ApiContext,
): Promise<void> {
  if (context.kafka.clusters.length === 0) return
  if ('letterIds' in selection)
    return refuseSharedTopics(selection.letterIds.slice(0, sampleMax), target, context)
  const { letters } = await context.letters().list({
    filter: selection.filter,
    order: 'deadLetteredAt',
    isDescending: false,
    countMax: sampleMax,
    bytes: 'none',
  })
  const origins = letters.map(({ origin }) => origin)
  const [shared] = await findSharedTopics(origins, target, context)
  if (shared !== undefined) throw new KnownError('KAFKA_TOPIC_SHARED', describeSharedTopic(shared))
}
