/** The record that a redriven letter becomes in Kafka. */
import type { Header, Item, Origin } from '../../../core/items/item.ts'
import { isRedriveHeader, nameSideTopic, redriveHeaders } from '../../../core/kafka/redrive-headers.ts'
import type { ReplayMode } from '../../../core/kafka/replay-queues.ts'
import { isDeadLetterTopic } from '../../../core/kafka/topic-patterns.ts'
import { isFailureHeader } from '../../../letters/envelope/header-conventions.ts'
import { envelopeHeaderName } from '../../../letters/envelope/read-envelope.ts'
import { tombstoneKind } from '../../../letters/envelope/read-record.ts'
import type { Cluster } from '../parts.ts'

export type RecordToSend = Readonly<{
  topic: string
  /** Null: the partitioner chooses by the key. */
  partition: number | null
  key: Uint8Array | null
  value: Uint8Array | null
  headers: readonly Header[]
  /** The consumer group that failed; null: unknown. */
  group: string | null
}>

/** Why a letter is not sent: a code for machines, and a sentence for people. */
export type ReplayRefusal = Readonly<{ code: string; message: string }>

/** A redriven item, and where its letter came from. */
export type ReplayRequest = Readonly<{
  item: Pick<Item, 'kind' | 'key' | 'payload' | 'headers' | 'letterId' | 'retryCount'>
  origin: Origin
  mode: ReplayMode
  /** The consumer groups that read the original topic, without the group of the bridge. */
  readers: readonly string[]
}>

export function createRecord(request: ReplayRequest, cluster: Cluster): RecordToSend | ReplayRefusal {
  const { item, origin, mode, readers } = request
  const group = origin.group ?? (readers.length === 1 ? (readers[0] ?? null) : null)
  const refusal = findRefusal(request, group, cluster)
  if (refusal !== undefined) return refusal
  const topic =
    mode === 'side-topic' && group !== null && !isSideTopicOf(origin.name, group)
      ? nameSideTopic(origin.name, group)
      : origin.name
  return {
    topic,
    partition: origin.partition,
    key: item.key,
    value: item.kind === tombstoneKind && item.payload.byteLength === 0 ? null : item.payload,
    headers: [...keepHeaders(item.headers, cluster), ...createRedriveHeaders(item, group)],
    group,
  }
}

function isSideTopicOf(topic: string, group: string): boolean {
  return topic.endsWith(nameSideTopic('', group))
}

function findRefusal(
  { origin, mode, readers }: ReplayRequest,
  group: string | null,
  { topics }: Cluster,
): ReplayRefusal | undefined {
  if (isDeadLetterTopic(origin.name, topics))
    return {
      code: 'dead_letter_topic',
      message: `${origin.name} is a dead-letter topic, and a redrive never goes to one`,
    }
  if (mode === 'side-topic' && group === null)
    return {
      code: 'group_unknown',
      message: `the consumer group that failed is unknown, so there is no side topic of ${origin.name} for it`,
    }
  const others = listOtherReaders(readers, group)
  if (mode === 'topic' && others.length > 0) return describeOtherReaders(origin.name, others)
  return undefined
}

/** The groups that would see a record again although they did not fail. */
export function listOtherReaders(readers: readonly string[], group: string | null): readonly string[] {
  if (group === null && readers.length === 1) return []
  return readers.filter((reader) => reader !== group)
}

const groupsShown = 5

export function describeOtherReaders(topic: string, others: readonly string[]): ReplayRefusal {
  const more = others.length > groupsShown ? ` and ${others.length - groupsShown} more` : ''
  return {
    code: 'other_groups',
    message:
      `other consumer groups read ${topic} and would process the record again: ` +
      `${others.slice(0, groupsShown).join(', ')}${more}; redrive to the side topic, or with force`,
  }
}

function keepHeaders(headers: readonly Header[], { keepsErrorHeaders }: Cluster): readonly Header[] {
  return headers.filter(
    ([name]) =>
      !isRedriveHeader(name) && name !== envelopeHeaderName && (keepsErrorHeaders || !isFailureHeader(name)),
  )
}

function createRedriveHeaders(
  { letterId, retryCount }: ReplayRequest['item'],
  group: string | null,
): readonly Header[] {
  const header = (name: string, text: string): Header => [name, Buffer.from(text)]
  return [
    header(redriveHeaders.letterId, letterId ?? ''),
    header(redriveHeaders.attempt, String(retryCount)),
    ...(group === null ? [] : [header(redriveHeaders.targetGroup, group)]),
  ]
}
