import { later } from '../../core/instant.ts'
import type { Item, LetterFacts } from '../../core/item.ts'
import { newLetterFacts } from '../../core/letter.ts'
import type { Queue } from '../../core/queue.ts'
import type { Import, ItemToImport, Produce } from '../contract/items.ts'

export function createProducedItem(command: Produce, index: number, queue: Queue, id: string): Item {
  const { lease, ...made } = command.items[index] as Produce['items'][number]
  if (lease === undefined) return newItem(command, made, queue, id)
  const deadline = later(command.now, queue.leaseUs)
  return newItem(command, { ...made, attempts: 1, lease: { holder: lease.holder, deadline } }, queue, id)
}

export function createImportedItem(
  command: Import,
  index: number,
  queue: Queue,
  id: string,
  random: () => number,
  groupId: number | null = null,
): Item {
  const given = command.items[index] as ItemToImport
  const letter = given.origin ? newLetterFacts(command.now, queue.redrive, random) : null
  return newItem(command, given, queue, id, groupId, letter)
}

function newItem(
  command: Produce | Import,
  given: ItemToImport,
  queue: Queue,
  id: string,
  groupId: number | null = null,
  letter: LetterFacts | null = null,
): Item {
  const { now, partition } = command
  // Made in one go: most items wait, and a copy of so many fields is felt when there are thousands.
  const waiting = {
    state: 'waiting',
    availableAt: given.availableAt ?? null,
    id,
    rootId: id,
    queue: queue.name,
    partition,
    sourceId: given.sourceId ?? null,
    attempts: given.attempts ?? 0,
    attemptsMax: given.attemptsMax ?? 0,
    priority: given.priority ?? 0,
    kind: given.kind ?? '',
    encoding: given.encoding ?? '',
    reference: given.reference ?? '',
    key: given.key ?? null,
    headers: given.headers ?? [],
    payload: given.payload,
    createdAt: now,
    updatedAt: now,
    expireDeadline: given.expireDeadline ?? later(now, queue.expireUs),
    failure: given.failure ?? null,
    origin: given.origin ?? null,
    diedAt: given.diedAt ?? (given.origin ? now : null),
    letterId: given.letterId ?? null,
    redrives: given.redrives ?? 0,
    history: given.history ?? [],
    groupId,
    letter,
  } as const
  const { lease, givenLeaseDeadline } = given
  if (lease) {
    const { state, availableAt, ...base } = waiting
    return { ...base, state: 'leased', lease }
  }
  return givenLeaseDeadline === undefined ? waiting : { ...waiting, givenLeaseDeadline }
}
