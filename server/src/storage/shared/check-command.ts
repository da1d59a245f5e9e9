import { instantMax, instantMin } from '../../core/instant.ts'
import { partitionsMax } from '../../core/queue.ts'
import { findTextFault } from '../../core/storable-text.ts'
import { KnownError } from '../../errors.ts'
import type { AuditContext } from '../contract/audit.ts'
import type { ItemToImport, NewItem } from '../contract/items.ts'
import type { LetterFilter, RedriveLetters } from '../contract/letters.ts'
import type { Command } from '../contract/storage.ts'

/**
 * What both backends refuse before they look at a command, in the same words: numbers that one of them
 * could not keep, and texts that are none. PostgreSQL cannot keep a NUL character in a text, and an unpaired surrogate has no UTF-8: both
 * backends refuse them, so that what one store takes the other takes too. Bytes belong in the payload,
 * the key and the headers' values. (Failures, origins and details are kept as JSON, which escapes both.)
 */
export function checkCommand(command: Command): void {
  if ('countMax' in command) checkNumber('countMax', command.countMax, 1, countMaxMax)
  if ('now' in command) checkInstant('now', command.now)
  if ('trace' in command && command.trace !== undefined) checkTrace(command.trace)
  switch (command.op) {
    case 'produce':
      checkText('key', command.once?.key)
      for (const item of command.items) checkItem(item)
      return
    case 'import':
      for (const item of command.items) checkItem(item)
      return
    case 'lease':
      for (const holder of command.holders) checkText('holder', holder)
      return
    case 'create-queue':
      if (command.queue.name === '') throw new KnownError('BAD_REQUEST', 'name cannot be empty')
      checkNumber('partitions', command.queue.partitions ?? 1, 1, partitionsMax)
      checkText('name', command.queue.name)
      checkText('namespace', command.queue.namespace)
      checkText('deadQueue', command.queue.deadQueue)
      return
    case 'update-queue':
      checkText('deadQueue', command.changes.deadQueue)
      return
    case 'audit':
      for (const entry of command.entries) {
        for (const field of ['actor', 'action', 'target', 'reason', 'requestId'] as const) {
          checkText(field, entry[field])
        }
      }
      return
    case 'acquire-lock':
      checkText('name', command.name)
      checkText('owner', command.owner)
      return
    case 'archive':
      checkInstant('endedBefore', command.endedBefore)
      return
    case 'redrive':
      checkText('actor', command.actor)
      for (const { letterId, queue, edit, campaign } of command.letters) {
        checkLetter(letterId, campaign)
        checkText('queue', queue)
        if (typeof edit === 'number') checkNumber('edit', edit, 1, int4Max)
      }
      return
    case 'discard':
      checkText('reason', command.reason)
      for (const { letterId, campaign } of command.letters) checkLetter(letterId, campaign)
      return
    case 'end-redrives':
      for (const { letterId } of command.ends) checkText('letterId', letterId)
      return
    case 'restore':
    case 'freeze-ids':
    case 'postpone-redrives':
      if ('campaignId' in command) checkText('campaignId', command.campaignId)
      if ('until' in command) checkInstant('until', command.until)
      for (const letterId of command.letterIds) checkText('letterId', letterId)
      return
    case 'edit-letter':
      checkText('letterId', command.letterId)
      checkText('actor', command.actor)
      return
    case 'purge-archive':
      checkInstant('archivedBefore', command.archivedBefore)
      return
    case 'put-campaign':
      if (command.id === '') throw new KnownError('BAD_REQUEST', 'the id of a campaign cannot be empty')
      checkText('id', command.id)
      checkText('state', command.state)
      checkNumber('version', command.version, 0, int4Max)
      return
    case 'freeze-letters':
      checkText('campaignId', command.campaignId)
      checkNumber('lookMax', command.lookMax, 1, countMaxMax)
      checkFilter(command.filter)
      return
    case 'skip-letters':
      checkText('campaignId', command.campaignId)
      checkText('why', command.why)
      return
    default:
      return
  }
}

function checkItem(item: NewItem | ItemToImport): void {
  checkNumber('priority', item.priority ?? 0, -int4Max, int4Max)
  checkNumber('attemptsMax', item.attemptsMax ?? 0, 0, int4Max)
  checkNumber('redrives', item.redrives ?? 0, 0, int4Max)
  if (item.availableAt != null) checkInstant('availableAt', item.availableAt)
  if (item.expireDeadline !== undefined) checkInstant('expireDeadline', item.expireDeadline)
  if ('attempts' in item) checkNumber('attempts', item.attempts ?? 0, 0, int4Max)
  if (item.lease && 'deadline' in item.lease) checkInstant('lease.deadline', item.lease.deadline)
  checkText('kind', item.kind)
  checkText('encoding', item.encoding)
  checkText('reference', item.reference)
  checkText('letterId', item.letterId)
  if (item.lease) checkText('holder', item.lease.holder)
  if ('sourceId' in item) checkText('sourceId', item.sourceId)
  if ('diedAt' in item && item.diedAt != null) checkInstant('diedAt', item.diedAt)
}

function checkTrace({ at, actor, action, reason, requestId, sum }: AuditContext): void {
  checkInstant('trace.at', at)
  for (const text of [actor, action, reason, requestId, sum?.action, sum?.target]) checkText('trace', text)
}

function checkLetter(letterId: string, campaign: RedriveLetters['letters'][number]['campaign']): void {
  checkText('letterId', letterId)
  if (campaign == null) return
  checkText('campaign.id', campaign.id)
  checkNumber('campaign.place', campaign.place, 0, int4Max)
}

function checkFilter(filter: LetterFilter): void {
  for (const field of ['queues', 'origins', 'reasons', 'slugs', 'errorClasses'] as const) {
    for (const text of filter[field] ?? []) checkText(field, text)
  }
  checkText('text', filter.text)
  checkText('header', filter.header?.name)
  checkText('header', filter.header?.value)
}

const int4Max = 2 ** 31 - 1
const countMaxMax = 1_000_000

function checkInstant(field: string, instant: number): void {
  checkNumber(field, instant, instantMin, instantMax)
}

function checkNumber(field: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return
  throw new KnownError('BAD_REQUEST', `${field} is ${value}; it must be a whole number from ${min} to ${max}`)
}

function checkText(field: string, text: string | null | undefined): void {
  if (text === null || text === undefined) return
  const fault = findTextFault(text)
  if (fault !== undefined) throw new KnownError('BAD_REQUEST', `${field} contains ${fault}`)
}
