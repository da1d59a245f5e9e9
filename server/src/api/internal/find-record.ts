/** Finds the letter of a record by its place in its dead-letter topic. */
import type { LetterId } from '../../core/ids/ids.ts'
import { KnownError } from '../../errors.ts'
import { nameReference } from '../../letters/envelope/read-record.ts'
import type { ApiContext } from '../context.ts'
import { InvalidRequest } from '../http/validation/invalid-request.ts'

/**
 * Without a partition or a cluster, the offset must be that of one record only. A topic that was created
 * again can have several letters of one place: the newest is that of the record that the topic has now.
 */
export type RecordPlace = Readonly<{
  topic: string
  offset: number
  partition?: number | undefined
  cluster?: string | undefined
}>

const lettersMax = 50

export async function findRecord(place: RecordPlace, context: ApiContext): Promise<LetterId> {
  const { topic, offset } = place
  const references = await listReferences(place, context)
  const letters = await context.letters().list({
    filter: { references },
    order: 'deadLetteredAt',
    isDescending: true,
    countMax: lettersMax,
    bytes: 'none',
  })
  const [letter] = letters.letters
  if (letter === undefined)
    throw new KnownError(
      'LETTER_NOT_FOUND',
      `there is no letter of offset ${offset} of topic ${topic}${describePlace(place)}`,
    )
  if (letters.letters.every(({ reference }) => reference === letter.reference)) return letter.rootId
  const field = place.partition === undefined ? 'query.partition' : 'query.cluster'
  throw new InvalidRequest([
    { field, message: `is needed: offset ${offset} of topic ${topic} is that of several letters` },
  ])
}

function describePlace({ partition, cluster }: RecordPlace): string {
  const inPartition = partition === undefined ? '' : `, partition ${partition}`
  return `${inPartition}${cluster === undefined ? '' : `, in cluster ${cluster}`}`
}

/** An offset belongs to a partition. Without one, all partitions that were ever read are candidates. */
async function listReferences(
  { topic, offset, partition, cluster }: RecordPlace,
  { kafka, storage }: ApiContext,
): Promise<readonly string[]> {
  const clusters = kafka.clusters.filter(({ name }) => cluster === undefined || name === cluster)
  const references = await Promise.all(
    clusters.map(async ({ name, group }) => {
      if (partition !== undefined) return [nameReference({ cluster: name, topic, partition, offset })]
      const positions = await storage().listKafkaPositions({ cluster: name, group })
      return positions
        .filter((each) => each.topic === topic)
        .map((each) => nameReference({ cluster: name, topic, partition: each.partition, offset }))
    }),
  )
  return references.flat()
}
