import { later } from '../../core/instant.ts'
import type { Item, LetterFacts } from '../../core/item.ts'
import { newLetterFacts } from '../../core/letter.ts'
import type { Queue } from '../../core/queue.ts'
import type { Import, ItemToImport, Produce } from '../contract/items.ts'

export function createProducedItem(command: Produce, index: number, queue: Queue, id: string): Item {
  const { lease, ...given } = command.items[index] as Produce['items'][number]
  if (lease === undefined) return createItem(command, given, queue, id)
  const deadline = later(command.now, queue.leaseUs)
  return createItem(command, { ...given, attempts: 1, lease: { holder: lease.holder, deadline } }, queue, id)
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
  return createItem(command, given, queue, id, groupId, letter)
}

function createItem(
  { now, partition }: Produce | Import,
  given: ItemToImport,
  queue: Queue,
  id: string,
  groupId: number | null = null,
  letter: LetterFacts | null = null,
): Item {
  const { payload, key = null, headers = [], kind = '', encoding = '', reference = '' } = given
  const { attempts = 0, attemptsMax = 0, priority = 0, availableAt = null, expireDeadline } = given
  const { sourceId = null, origin = null, failure = null, history = [], diedAt } = given
  const { letterId = null, redrives = 0, lease, givenLeaseDeadline } = given
  // One object literal: most items wait, and copying this many fields would slow every produce.
  const waiting = {
    state: 'waiting',
    availableAt,
    id,
    rootId: id,
    queue: queue.name,
    partition,
    sourceId,
    attempts,
    attemptsMax,
    priority,
    kind,
    encoding,
    reference,
    key,
    headers,
    payload,
    createdAt: now,
    updatedAt: now,
    expireDeadline: expireDeadline ?? later(now, queue.expireUs),
    failure,
    origin,
    diedAt: diedAt ?? (origin ? now : null),
    letterId,
    redrives,
    history,
    groupId,
    letter,
  } as const
  if (lease) {
    const { state: _state, availableAt: _availableAt, ...base } = waiting
    return { ...base, state: 'leased', lease }
  }
  return givenLeaseDeadline === undefined ? waiting : { ...waiting, givenLeaseDeadline }
}
