import { KnownError } from '../errors.ts'
import type { Command, ImportedItem, NewItem } from './storage.ts'

/**
 * PostgreSQL cannot keep a NUL character in a text, and an unpaired surrogate has no UTF-8: both
 * backends refuse them, so that what one store takes the other takes too. Bytes belong in the payload,
 * the key and the headers' values. (Failures, origins and details are kept as JSON, which escapes both.)
 */
export function checkTexts(command: Command): void {
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
    default:
      return
  }
}

function checkItem(item: NewItem | ImportedItem): void {
  checkText('kind', item.kind)
  checkText('encoding', item.encoding)
  checkText('reference', item.reference)
  checkText('letterId', item.letterId)
  if (item.lease) checkText('holder', item.lease.holder)
  if ('sourceId' in item) checkText('sourceId', item.sourceId)
}

function checkText(field: string, text: string | null | undefined): void {
  if (text === null || text === undefined) return
  if (text.includes('\0')) throw new KnownError('BAD_REQUEST', `${field} contains a NUL character`)
  if (!text.isWellFormed()) throw new KnownError('BAD_REQUEST', `${field} contains an unpaired surrogate`)
}
