/**
 * Finds the letters whose redriven records are among dead records: these return to their letters instead of
 * becoming new ones. A record is recognised, in this order,
 *
 * 1. by the headers of the redrive, which most workers copy,
 * 2. by the place of the redriven record, if the worker names the place of the original record,
 * 3. by key and value, if it names neither.
 *
 * A record whose consumer group or topic is not that of the redrive is another death, and a new letter: for
 * example of another group that read the redriven record, or of an event that a consumer derived from it and
 * that has the same headers.
 */
import { createHash } from 'node:crypto'
import { parseLetterId } from '../../../core/ids/ids.ts'
import type { Header } from '../../../core/items/item.ts'
import { redriveHeaders } from '../../../core/kafka/redrive-headers.ts'
import type { CapturedLetter } from '../../../letters/envelope/read-record.ts'
import type { KafkaReplay } from '../../../storage/contract/kafka.ts'
import type { StoreReads } from '../../../storage/contract/storage.ts'

/** A redrive, by its letter and its ordinal. `isGuess`: the record has no headers that name it. */
export type RedriveName = Readonly<{ letterId: string; number: number; isGuess: boolean }>

type Reads = Pick<StoreReads, 'getLetters' | 'listKafkaReplays'>

const matchesMax = 100

/** For each letter the redrive that it belongs to; undefined: it is a new letter. */
export async function findReturns(
  storage: Reads,
  cluster: string,
  letters: readonly CapturedLetter[],
): Promise<readonly (RedriveName | undefined)[]> {
  const named = letters.map(({ headers }) => readRedriveHeaders(headers))
  const [byLetter, byPlace] = await Promise.all([
    readNamed(storage, cluster, named),
    readUnnamed(
      storage,
      cluster,
      letters.filter((_, at) => named[at] === undefined),
    ),
  ])
  // Each record of the batch that is recognised by its bytes takes the redrive that was sent first.
  const taken = new Set<string>()
  return letters.map((letter, at) => {
    const name = named[at]
    if (name !== undefined) return byLetter(name, letter) ? name : undefined
    const replay = byPlace(letter).find((each) => !taken.has(each.letterId))
    if (replay === undefined) return undefined
    taken.add(replay.letterId)
    return { letterId: replay.letterId, number: replay.number, isGuess: true }
  })
}

export function readRedriveHeaders(headers: readonly Header[]): RedriveName | undefined {
  if (!headers.some(([name]) => name === redriveHeaders.letterId)) return undefined
  // The last value counts: a record that is redriven again gets new headers after the old ones.
  const last = (name: string) => headers.findLast((header) => header[0] === name)?.[1]
  const letterId = parseLetterId(decode(last(redriveHeaders.letterId)))
  const number = Number(decode(last(redriveHeaders.attempt)))
  return letterId === undefined || !Number.isInteger(number) || number < 1
    ? undefined
    : { letterId, number, isGuess: false }
}

const decoder = new TextDecoder()

function decode(bytes: Uint8Array | null | undefined): string {
  return bytes == null ? '' : decoder.decode(bytes)
}

/** Digest of key and value, to recognise a record without its headers. */
export function hashContent(key: Uint8Array | null, value: Uint8Array): string {
  const digest = createHash('sha256').update(key === null ? '-' : `${key.length}:`)
  return digest
    .update(key ?? '')
    .update(value)
    .digest('base64url')
    .slice(0, 22)
}

async function readNamed(
  storage: Reads,
  cluster: string,
  named: readonly (RedriveName | undefined)[],
): Promise<(name: RedriveName, letter: CapturedLetter) => boolean> {
  const letterIds = [...new Set(named.flatMap((name) => name?.letterId ?? []))]
  if (letterIds.length === 0) return () => false
  const [live, replays] = await Promise.all([
    storage.getLetters(letterIds, 'head'),
    storage.listKafkaReplays({ cluster, by: 'letter', letterIds, countMax: letterIds.length }),
  ])
  const found = new Map(live.map((letter) => [letter.rootId, letter]))
  const sent = new Map(replays.map((replay) => [replay.letterId, replay]))
  return ({ letterId, number }, { origin }) => {
    const letter = found.get(letterId)
    if (letter?.letter?.redrives.some((redrive) => redrive.number === number) !== true) return false
    const replay = sent.get(letterId)
    return replay === undefined || replay.number !== number || isSameDeath(replay, origin)
  }
}

function isSameDeath(
  { topic, group }: KafkaReplay,
  { name, group: failed, partition }: CapturedLetter['origin'],
): boolean {
  const isSameTopic = partition === null || name === topic
  return isSameTopic && (group === '' || failed === null || failed === group)
}

async function readUnnamed(
  storage: Reads,
  cluster: string,
  letters: readonly CapturedLetter[],
): Promise<(letter: CapturedLetter) => readonly KafkaReplay[]> {
  const none = () => []
  if (letters.length === 0) return none
  const until = Number.MAX_SAFE_INTEGER
  const outstanding = await storage.listKafkaReplays({ cluster, by: 'sent', until, countMax: 1 })
  if (outstanding.length === 0) return none
  const records = letters.flatMap(({ origin }) => placeOf(origin) ?? [])
  const hashes = new Map(letters.map((letter) => [letter, hashContent(letter.key, letter.payload)]))
  const contentHashes = [...new Set(hashes.values())]
  const [atPlaces, alike] = await Promise.all([
    storage.listKafkaReplays({ cluster, by: 'record', records, countMax: matchesMax }),
    storage.listKafkaReplays({ cluster, by: 'content', contentHashes, countMax: matchesMax }),
  ])
  return (letter) => {
    const place = placeOf(letter.origin)
    const isAlike = ({ contentHash }: KafkaReplay) => contentHash === hashes.get(letter)
    const matches =
      place === undefined
        ? alike.filter(isAlike)
        : [
            ...atPlaces.filter((replay) => isAt(replay, place)),
            // A record that died before its place was recorded.
            ...alike.filter((replay) => replay.offset < 0 && replay.topic === place.topic && isAlike(replay)),
          ]
    return matches.filter((replay) => isSameDeath(replay, letter.origin))
  }
}

function isAt({ topic, partition, offset }: KafkaReplay, place: Place): boolean {
  return topic === place.topic && partition === place.partition && offset === place.offset
}

type Place = Readonly<{ topic: string; partition: number; offset: number }>

function placeOf({ name, partition, id }: CapturedLetter['origin']): Place | undefined {
  const offset = /^\d{1,15}$/.test(id) ? Number(id) : undefined
  return partition === null || offset === undefined ? undefined : { topic: name, partition, offset }
}
