import { createLetterFacts } from '../../../core/dead-letters/letter.ts'
import type { Item, LetterFacts } from '../../../core/items/item.ts'
import type { Queue } from '../../../core/items/queue.ts'
import { addDuration } from '../../../core/time/instant.ts'
import type { Import, ItemToImport, Produce } from '../../contract/items.ts'

export function createProducedItem(command: Produce, index: number, queue: Queue, id: string): Item {
  const { lease, ...given } = command.items[index] as Produce['items'][number]
  if (lease === undefined) return createItem(command, given, queue, id)
  const deadline = addDuration(command.now, queue.leaseTimeoutUs)
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
  const letter = given.origin ? createLetterFacts(command.now, queue.redrive, random) : null
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
  const { sourceId = null, origin = null, failure = null, history = [], deadLetteredAt } = given
  const { letterId = null, retryCount = 0, lease, givenLeaseDeadline } = given
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
    expireDeadline: expireDeadline ?? addDuration(now, queue.expireTimeoutUs),
    failure,
    origin,
    deadLetteredAt: deadLetteredAt ?? (origin ? now : null),
    letterId,
    retryCount,
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
