/**
 * A store as a caller sees it who may read the content of items in some namespaces only. Items of other
 * namespaces are listed as the redaction rules of their queue say, by default without payload, key and secret
 * headers, and cannot be searched by what is hidden.
 */

import { intersectScope } from '../../core/access/scope.ts'
import { toReasonSlug } from '../../core/dead-letters/reason.ts'
import type { QueueName } from '../../core/ids/ids.ts'
import type { Item } from '../../core/items/item.ts'
import { type Queue, systemNamespace } from '../../core/items/queue.ts'
import { overlay } from '../../core/overlay.ts'
import { redactContent, redactedBytes, redactedText } from '../../core/redaction/redaction.ts'
import { createRedaction, type Redaction } from '../../core/redaction/redaction-rules.ts'
import { KnownError } from '../../errors.ts'
import { takeTurn } from '../../turns.ts'
import type { StoredAlert } from '../contract/alerts.ts'
import type { AuditRow } from '../contract/audit.ts'
import type { StoredAttempt } from '../contract/deliveries.ts'
import type { GroupFacts, LetterCount, LetterCountsQuery, LetterFilter } from '../contract/letters.ts'
import type { StoreReads } from '../contract/storage.ts'
import type { Message } from '../contract/webhooks.ts'
import { redactDetails } from './redacted-filter.ts'

/** `visible`: all reads of the caller. `readable`: the namespaces whose content the caller may read. */
export function redactStorage(visible: StoreReads, readable: readonly string[]): StoreReads {
  const redactions = createRedactions(visible, readable)
  const redact = createRedactor(redactions)
  return overlay(visible, {
    ...redactGroupReads(visible, redactions),
    ...redactAlertReads(visible, redactions, readable),
    ...(!readable.includes(systemNamespace) && hideMessages(visible)),
    listAudit: async (query) => (await visible.listAudit(query)).map((row) => redactAudit(row, readable)),
    listItems: async (query) => redact(await visible.listItems(query)),
    listArchive: async (query) => redactArchived(await visible.listArchive(query), redact),
    getLetters: async (letterIds, bytes) => redact(await visible.getLetters(letterIds, bytes)),
    getArchivedLetters: async (letterIds) =>
      redactArchived(await visible.getArchivedLetters(letterIds), redact),
    listEdits: async (letterId) => {
      const [edits, live, archived] = await Promise.all([
        visible.listEdits(letterId),
        visible.getLetters([letterId], 'head'),
        visible.getArchivedLetters([letterId]),
      ])
      const queue = live[0]?.queue ?? archived[0]?.item.queue
      const [redaction] = queue === undefined ? [createRedaction(undefined)] : await redactions([queue])
      return redaction == null ? edits : edits.map((edit) => redaction.content(edit))
    },
    findRanges: async (query) => {
      const filter = await limitTextSearch(limitContentSearch(query.filter, readable), visible, readable)
      const ranges = await visible.findRanges({ ...query, filter })
      return {
        scan: async (bounds) => {
          const page = await ranges.scan(bounds)
          const items = await redact(page.found.map(({ item }) => item))
          const found = page.found.map((each, index) => ({ ...each, item: items[index] ?? each.item }))
          return { ...page, found }
        },
      }
    },
  })
}

/** For each of these queues how its letters are shown; null: the caller reads everything. */
type Redactions = (names: readonly QueueName[]) => Promise<readonly (Redaction | null)[]>

function createRedactions(visible: StoreReads, readable: readonly string[]): Redactions {
  const isReadable = (queue: Queue | null): boolean => readable.includes(queue?.namespace ?? '')
  return async (names) => {
    const queues = await Promise.all(names.map((name) => visible.getQueue(name)))
    return queues.map((queue) => (isReadable(queue) ? null : createRedaction(queue?.redaction)))
  }
}

type Redact = <I extends Item>(items: readonly I[]) => Promise<readonly I[]>

/** Longer texts are examined one item per turn of the event loop. */
const turnTextMin = 4_096

function createRedactor(redactions: Redactions): Redact {
  return async (items) => {
    const names = [...new Set(items.map(({ queue }) => queue))]
    const found = await redactions(names)
    const byQueue = new Map(names.map((name, index) => [name, found[index]]))
    const shown: (typeof items)[number][] = []
    for (const item of items) {
      const redaction = byQueue.get(item.queue)
      if (redaction?.hasPatterns === true && measureText(item) >= turnTextMin) await takeTurn()
      shown.push(redaction == null ? item : redaction.item(item))
    }
    return shown
  }
}

function measureText({ payload, failure, history }: Item): number {
  const texts = failure === null ? history : [failure, ...history]
  return texts.reduce((sum, { message, stack }) => sum + message.length + stack.length, payload.byteLength)
}

type GroupReads = Pick<StoreReads, 'listGroups' | 'readGroupLabels' | 'countLetters'>

/** The titles of groups are made of error messages. */
function redactGroupReads(visible: StoreReads, redactions: Redactions): GroupReads {
  const listGroups: StoreReads['listGroups'] = async (query) => {
    const groups = await visible.listGroups(query)
    const names = [...new Set(groups.map(({ queue }) => queue))]
    const found = await redactions(names)
    return groups.map((group) => redactGroup(group, found[names.indexOf(group.queue)] ?? null))
  }
  const readGroupLabels: StoreReads['readGroupLabels'] = async (groupIds) => {
    const labels = await visible.readGroupLabels(groupIds)
    const ids = [...new Set(labels.map(({ shownAs }) => shownAs))]
    if (ids.length === 0) return labels
    const groups = await listGroups({ filter: { groupIds: ids }, countMax: ids.length, isEmptyToo: true })
    const slugs = new Map(groups.map(({ id, slug, title }) => [id, { slug, title }]))
    return labels.map((label) => {
      const shown = slugs.get(label.shownAs)
      return shown?.title.includes(redactedText) === true ? { ...label, slug: shown.slug } : label
    })
  }
  return {
    listGroups,
    readGroupLabels,
    countLetters: async (query) => {
      const counts = query.by.includes('slug')
        ? await countBySlug(query, visible, readGroupLabels)
        : await visible.countLetters(query)
      const names = [...new Set(counts.flatMap(({ queue }) => queue ?? []))]
      const found = await redactions(names)
      return counts.map((count) => {
        const redaction = count.queue === undefined ? null : found[names.indexOf(count.queue)]
        if (redaction == null || count.errorClass === undefined) return count
        return { ...count, errorClass: redaction.text(count.errorClass) }
      })
    },
  }
}

/** A slug is made of an error message too: counts by group are added up under the slugs that lists show. */
async function countBySlug(
  query: LetterCountsQuery,
  visible: StoreReads,
  readGroupLabels: StoreReads['readGroupLabels'],
): Promise<readonly LetterCount[]> {
  const counts = await visible.countLetters({ ...query, by: [...new Set([...query.by, 'group' as const])] })
  const ids = [...new Set(counts.flatMap(({ group }) => group ?? []))]
  const labels = await readGroupLabels(ids)
  const slugs = new Map(labels.map(({ id, slug }) => [id, slug]))
  const sums = new Map<string, LetterCount>()
  for (const { group, ...rest } of counts) {
    const slug = group === undefined ? rest.slug : (slugs.get(group) ?? rest.slug)
    const shown = {
      ...rest,
      ...(slug !== undefined && { slug }),
      ...(query.by.includes('group') && group !== undefined && { group }),
    }
    const key = JSON.stringify(query.by.map((field) => shown[field] ?? null))
    sums.set(key, { ...shown, count: shown.count + (sums.get(key)?.count ?? 0) })
  }
  return [...sums.values()]
}

function redactAlertReads(
  visible: StoreReads,
  redactions: Redactions,
  readable: readonly string[],
): Pick<StoreReads, 'getAlert' | 'listAlerts'> {
  const redact = async (alerts: readonly StoredAlert[]): Promise<readonly StoredAlert[]> => {
    const names = [...new Set(alerts.flatMap(({ queue }) => queue ?? []))]
    const [found, queues] = await Promise.all([
      redactions(names),
      Promise.all(names.map((name) => visible.getQueue(name))),
    ])
    return alerts.map((alert) => {
      const index = alert.queue === null ? -1 : names.indexOf(alert.queue)
      if (index < 0 || readable.includes(alert.namespace)) return alert
      // The rules of a queue that was deleted are not known.
      const redaction = queues[index] == null ? null : found[index]
      const hide = (text: string | null | undefined) =>
        text == null ? null : (redaction?.text(text) ?? redactedText)
      const { groupTitle, sampleError } = alert.document
      return {
        ...alert,
        document: { ...alert.document, groupTitle: hide(groupTitle), sampleError: hide(sampleError) },
      }
    })
  }
  return {
    listAlerts: async (query) => redact(await visible.listAlerts(query)),
    getAlert: async (id) => {
      const found = await visible.getAlert(id)
      return found === null ? null : ((await redact([found]))[0] ?? null)
    },
  }
}

function redactGroup(group: GroupFacts, redaction: Redaction | null): GroupFacts {
  if (redaction === null || !redaction.hasPatterns) return group
  const title = redaction.text(group.title)
  return {
    ...group,
    title,
    errorClass: redaction.text(group.errorClass),
    slug: title === group.title ? group.slug : toReasonSlug(title),
  }
}

/**
 * Rows keep the filters of campaigns. Whether rules hide error texts may have changed since, so the
 * conditions on them are always hidden.
 */
function redactAudit(row: AuditRow, readable: readonly string[]): AuditRow {
  if (readable.includes(row.namespace ?? systemNamespace)) return row
  return { ...row, details: redactDetails(row.details) }
}

type MessageReads = Pick<StoreReads, 'readMessages' | 'getMessage' | 'getScheduled' | 'listAttempts'>

/** Messages of webhooks, and what their consumers answered, which may repeat the message. */
function hideMessages(visible: StoreReads): MessageReads {
  return {
    readMessages: async (numbers) => (await visible.readMessages(numbers)).map((each) => redactMessage(each)),
    getMessage: async (channelId, id) => redactMessage(await visible.getMessage(channelId, id)),
    getScheduled: async (channelId, id) => redactMessage(await visible.getScheduled(channelId, id)),
    listAttempts: async (query) => (await visible.listAttempts(query)).map(hideAnswer),
  }
}

function redactMessage<M extends Pick<Message, 'payload' | 'headers'> | null>(message: M): M {
  if (message === null) return message
  const { payload, headers } = redactContent({ ...message, key: null })
  return { ...message, payload, headers }
}

function hideAnswer(attempt: StoredAttempt): StoredAttempt {
  return attempt.body === null || attempt.body.byteLength === 0
    ? attempt
    : { ...attempt, body: redactedBytes, contentType: 'text/plain' }
}

async function redactArchived<A extends Readonly<{ item: Item }>>(
  archived: readonly A[],
  redact: Redact,
): Promise<readonly A[]> {
  const items = await redact(archived.map(({ item }) => item))
  return archived.map((each, index) => ({ ...each, item: items[index] ?? each.item }))
}

/** A search by content tells what the content is, so it finds only letters that the caller may read. */
export function limitContentSearch(filter: LetterFilter, readable: readonly string[]): LetterFilter {
  const { payloadText, json, key, header } = filter
  if ([payloadText, json, key, header].every((condition) => condition === undefined)) return filter
  if (readable.length === 0) {
    throw new KnownError(
      'ACCESS_DENIED',
      'a search by payload, key or header needs the permission payload.read',
    )
  }
  const namespaces = filter.namespaces === undefined ? readable : intersectScope(readable, filter.namespaces)
  return { ...filter, namespaces }
}

const queuesPerRead = 1_000

/**
 * A search by error text could find out what the rules hide in error texts, so it is refused for queues with
 * such rules.
 */
export async function limitTextSearch(
  filter: LetterFilter,
  visible: StoreReads,
  readable: readonly string[],
): Promise<LetterFilter> {
  if (filter.text === undefined || !(await hasHiddenErrorTexts(filter, visible, readable))) return filter
  throw new KnownError(
    'ACCESS_DENIED',
    'a search by message in a queue whose rules hide parts of error texts needs the permission payload.read; name other queues',
  )
}

/** Whether rules hide parts of error texts from the caller in the queues that the filter selects from. */
export async function hasHiddenErrorTexts(
  filter: LetterFilter,
  visible: StoreReads,
  readable: readonly string[],
): Promise<boolean> {
  const isHidden = (queue: Queue | null): boolean =>
    queue !== null &&
    !readable.includes(queue.namespace) &&
    (filter.namespaces?.includes(queue.namespace) ?? true) &&
    createRedaction(queue.redaction).hasPatterns
  if (filter.queues !== undefined) {
    const queues = await Promise.all(filter.queues.map((name) => visible.getQueue(name)))
    return queues.some(isHidden)
  }
  for (let from: QueueName | undefined; ; ) {
    const page = await visible.listQueues({ ...(from !== undefined && { from }), countMax: queuesPerRead })
    if (page.some(isHidden)) return true
    const last = page.at(-1)?.name
    if (last === undefined || page.length < queuesPerRead) return false
    from = last
  }
}
