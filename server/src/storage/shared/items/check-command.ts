/**
 * The checks of a command before a store executes it. Both stores refuse the same values with the same
 * messages: numbers that one of them cannot store, and texts that PostgreSQL cannot store (a NUL character,
 * or an unpaired surrogate, which has no UTF-8 encoding). Arbitrary bytes belong in the payload, the key and
 * the values of headers. Failures, origins and details are not checked: they are stored as JSON, which
 * escapes both.
 */

import { partitionsMax } from '../../../core/items/queue.ts'
import { findTextFault } from '../../../core/text/storable-text.ts'
import { instantMax, instantMin } from '../../../core/time/instant.ts'
import { KnownError } from '../../../errors.ts'
import type { AuditContext, AuditEntry } from '../../contract/audit.ts'
import type { ItemToImport, NewItem } from '../../contract/items.ts'
import type { LetterFilter, RedriveLetters } from '../../contract/letters.ts'
import type { CreateQueue } from '../../contract/queues.ts'
import type { Command } from '../../contract/storage.ts'
import type { PutChannel, PutConsumer, PutProducer } from '../../contract/webhooks.ts'

type Checks = {
  readonly [O in Command['op']]?: (command: Extract<Command, { op: O }>) => void
}

/** The fields that only commands of one kind have. A command that is not listed has none to check. */
const checks: Checks = {
  produce: ({ once, items }) => {
    checkText('key', once?.key)
    for (const item of items) checkItem(item)
  },
  import: ({ items }) => {
    for (const item of items) checkItem(item)
  },
  lease: ({ holders }) => {
    for (const holder of holders) checkText('holder', holder)
  },
  'record-lease-calls': ({ calls }) => {
    for (const { queue, at } of calls) {
      checkText('queue', queue)
      checkInstant('at', at)
    }
  },
  'create-queue': checkNewQueue,
  'update-queue': ({ changes }) => checkText('deadQueue', changes.deadQueue),
  audit: ({ entries }) => {
    for (const entry of entries) checkAuditEntry(entry)
  },
  'acquire-lock': ({ name, owner }) => {
    checkText('name', name)
    checkText('owner', owner)
  },
  archive: ({ endedBefore }) => checkInstant('endedBefore', endedBefore),
  redrive: checkRedrive,
  discard: ({ reason, letters }) => {
    checkText('reason', reason)
    for (const { letterId, campaign } of letters) checkLetter(letterId, campaign)
  },
  'end-redrives': ({ ends }) => {
    for (const { letterId } of ends) checkText('letterId', letterId)
  },
  restore: ({ letterIds }) => checkLetterIds(letterIds),
  'cancel-redrives': ({ letterIds }) => checkLetterIds(letterIds),
  'freeze-ids': ({ campaignId, letterIds }) => {
    checkText('campaignId', campaignId)
    checkLetterIds(letterIds)
  },
  'postpone-redrives': ({ until, letterIds }) => {
    checkInstant('until', until)
    checkLetterIds(letterIds)
  },
  'edit-letter': ({ letterId, actor }) => {
    checkText('letterId', letterId)
    checkText('actor', actor)
  },
  'purge-archive': ({ archivedBefore }) => checkInstant('archivedBefore', archivedBefore),
  'pin-title': ({ title }) => {
    if (title !== null) checkText('title', title)
  },
  'put-campaign': ({ id, state, version }) => {
    if (id === '') throw new KnownError('BAD_REQUEST', 'the id of a campaign cannot be empty')
    checkText('id', id)
    checkText('state', state)
    checkNumber('version', version, 0, int4Max)
  },
  'freeze-letters': ({ campaignId, examinedMax, filter }) => {
    checkText('campaignId', campaignId)
    checkNumber('examinedMax', examinedMax, 1, countMaxMax)
    checkFilter(filter)
  },
  'change-access': ({ version, changes }) => {
    checkNumber('version', version, 0, Number.MAX_SAFE_INTEGER)
    for (const change of changes) checkTexts(change)
  },
  'record-heartbeats': ({ heartbeats, workersMax }) => {
    checkNumber('workersMax', workersMax, 0, countMaxMax)
    for (const heartbeat of heartbeats) {
      checkTexts(heartbeat)
      for (const error of Object.keys(heartbeat.retries ?? {})) checkText('error', error)
    }
  },
  'forget-workers': ({ workers }) => {
    for (const worker of workers) checkTexts(worker)
  },
  'put-alert-config': ({ name, namespace, secret, version }) => {
    for (const text of [name, namespace, secret]) checkText('config', text)
    checkNumber('version', version, 0, int4Max)
  },
  'put-alerts': ({ alerts }) => {
    for (const { version, isTracked: _, document: __, ...columns } of alerts) {
      checkNumber('version', version, 0, int4Max)
      checkTexts(columns)
    }
  },
  'prune-alerts': ({ before, keptMax }) => {
    checkInstant('before', before)
    checkNumber('keptMax', keptMax, 0, countMaxMax)
  },
  'record-key-uses': ({ uses }) => {
    for (const { keyId, at } of uses) {
      checkText('keyId', keyId)
      checkInstant('at', at)
    }
  },
  'create-session': ({ session }) => checkTexts(session),
  'put-producer': checkEntity,
  'put-channel': checkEntity,
  'put-consumer': (command) => {
    checkEntity(command)
    checkText('channelId', command.channelId)
    checkText('callbackUrl', command.callbackUrl)
  },
  'accept-messages': ({ messages }) => {
    for (const { id, contentType, channelId, producerId, priority, dueAt } of messages) {
      for (const text of [id, contentType, channelId, producerId]) checkText('message', text)
      checkNumber('priority', priority, -int4Max, int4Max)
      if (dueAt !== null) checkInstant('dueAt', dueAt)
    }
  },
  'take-job': ({ holder, deadline }) => {
    checkText('holder', holder)
    checkInstant('deadline', deadline)
  },
  'skip-letters': ({ campaignId, refusal }) => {
    checkText('campaignId', campaignId)
    checkText('refusal', refusal)
  },
}

/** Rejects an invalid command with BAD_REQUEST. */
export function checkCommand(command: Command): void {
  if ('countMax' in command) checkNumber('countMax', command.countMax, 1, countMaxMax)
  if ('now' in command) checkInstant('now', command.now)
  if ('audit' in command && command.audit !== undefined) checkAuditContext(command.audit)
  // Each check takes the command of its own op, which the type of an indexed union cannot express.
  const check = checks[command.op] as ((command: Command) => void) | undefined
  check?.(command)
}

function checkEntity({ id, name, token }: PutProducer | PutChannel | PutConsumer): void {
  for (const text of [id, name, token]) checkText('text', text)
}

function checkNewQueue({ queue }: CreateQueue): void {
  if (queue.name === '') throw new KnownError('BAD_REQUEST', 'name cannot be empty')
  checkNumber('partitions', queue.partitions ?? 1, 1, partitionsMax)
  checkText('name', queue.name)
  checkText('namespace', queue.namespace)
  checkText('deadQueue', queue.deadQueue)
}

function checkItem(item: NewItem | ItemToImport): void {
  checkNumber('priority', item.priority ?? 0, -int4Max, int4Max)
  checkNumber('attemptsMax', item.attemptsMax ?? 0, 0, int4Max)
  checkNumber('retryCount', item.retryCount ?? 0, 0, int4Max)
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
  if ('deadLetteredAt' in item && item.deadLetteredAt != null)
    checkInstant('deadLetteredAt', item.deadLetteredAt)
}

function checkAuditEntry(entry: AuditEntry): void {
  for (const field of ['actor', 'action', 'target', 'reason', 'requestId'] as const) {
    checkText(field, entry[field])
  }
}

function checkAuditContext({ at, actor, action, reason, requestId, sum }: AuditContext): void {
  checkInstant('audit.at', at)
  for (const text of [actor, action, reason, requestId, sum?.action, sum?.target]) checkText('audit', text)
}

function checkRedrive({ actor, letters }: RedriveLetters): void {
  checkText('actor', actor)
  for (const { letterId, queue, edit, campaign } of letters) {
    checkLetter(letterId, campaign)
    checkText('queue', queue)
    if (typeof edit === 'number') checkNumber('edit', edit, 1, int4Max)
  }
}

function checkLetter(letterId: string, campaign: RedriveLetters['letters'][number]['campaign']): void {
  checkText('letterId', letterId)
  if (campaign == null) return
  checkText('campaign.id', campaign.id)
  checkNumber('campaign.position', campaign.position, 0, int4Max)
}

function checkLetterIds(letterIds: readonly string[]): void {
  for (const letterId of letterIds) checkText('letterId', letterId)
}

function checkFilter(filter: LetterFilter): void {
  for (const field of ['queues', 'namespaces', 'origins', 'errorCodes', 'slugs', 'errorClasses'] as const) {
    for (const text of filter[field] ?? []) checkText(field, text)
  }
  checkText('text', filter.text)
  checkText('header', filter.header?.name)
  checkText('header', filter.header?.value)
}

/** Checks all texts and times of a record of access control. */
function checkTexts(record: object): void {
  for (const [field, value] of Object.entries(record)) {
    if (typeof value === 'string') checkText(field, value)
    else if (typeof value === 'number') checkInstant(field, value)
    else if (typeof value === 'object' && value !== null) checkTexts(value)
  }
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
