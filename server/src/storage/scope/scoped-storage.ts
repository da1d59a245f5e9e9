/**
 * A store as a caller sees it who may act in some namespaces only. Queues, letters, campaigns and audit rows
 * of other namespaces do not exist in it.
 *
 * Every read of the contract is listed here, so that a new read cannot be added without this decision. The
 * cost of a read stays proportional to its answer: filters carry the namespaces, and rows that were read by
 * their ids are checked afterwards. The namespace of a queue and the queue of a letter never change, so a
 * check beside the read is exact.
 */
import { intersectScope } from '../../core/access/scope.ts'
import type { LetterId, QueueName } from '../../core/ids/ids.ts'
import { type Queue, systemNamespace } from '../../core/items/queue.ts'
import type { AlertStore } from '../contract/alerts.ts'
import type { CampaignStore } from '../contract/campaigns.ts'
import type { DeliveryStore } from '../contract/deliveries.ts'
import type { KafkaStore } from '../contract/kafka.ts'
import type { CountedFilter, GroupsQuery } from '../contract/letters.ts'
import type { QueuesQuery } from '../contract/queues.ts'
import type { StoreReads } from '../contract/storage.ts'
import type { MessageCounts, WebhookStore } from '../contract/webhooks.ts'

export function scopeStorage(storage: StoreReads, namespaces: readonly string[]): StoreReads {
  const queues = createVisibleQueues(storage, namespaces)
  return {
    ...scopeServerReads(storage),
    ...scopeQueueReads(storage, queues, namespaces),
    ...scopeLetterReads(storage, queues, namespaces),
    ...scopeCampaignReads(storage, namespaces),
    ...scopeDriverReads(storage, namespaces),
    ...scopeAlertReads(storage, namespaces),
    listWorkers: async (query) =>
      storage.listWorkers({ ...query, namespaces: intersectScope(namespaces, query.namespaces) }),
    listAudit: async (query) =>
      storage.listAudit({ ...query, namespaces: intersectScope(namespaces, query.namespaces) }),
    // The chains belong to all namespaces together.
    readAuditChain: async () => [],
    readAuditHeads: async () => [],
  }
}

type ServerReads = Pick<
  StoreReads,
  | 'kind'
  | 'clock'
  | 'announce'
  | 'onAnnounced'
  | 'ping'
  | 'close'
  | 'verify'
  | 'reconcile'
  | 'readNextDueAt'
  | 'prefetchLetters'
  | 'readAccessState'
  | 'listAccess'
  | 'readHolder'
  | 'readWatchRecords'
>

/** Reads that belong to the server. The layer `access/` checks who may read users, keys and roles. */
function scopeServerReads(storage: StoreReads): ServerReads {
  return {
    kind: storage.kind,
    clock: storage.clock,
    announce: (queues) => storage.announce(queues),
    onAnnounced: (listener) => storage.onAnnounced(listener),
    ping: () => storage.ping(),
    close: () => storage.close(),
    verify: () => storage.verify(),
    reconcile: (lock) => storage.reconcile(lock),
    readNextDueAt: () => storage.readNextDueAt(),
    prefetchLetters: (letterIds) => storage.prefetchLetters(letterIds),
    readAccessState: () => storage.readAccessState(),
    listAccess: (query) => storage.listAccess(query),
    readHolder: (credential) => storage.readHolder(credential),
    // The clocks of the sources. Retries and totals are read by the metrics only.
    readWatchRecords: async () => ({ ...(await storage.readWatchRecords()), retries: [], totals: [] }),
  }
}

function scopeAlertReads(storage: StoreReads, namespaces: readonly string[]): AlertStore {
  const within = <T extends Readonly<{ namespace: string }>>(found: T | null): T | null =>
    found !== null && namespaces.includes(found.namespace) ? found : null
  return {
    listAlertConfigs: async (query) =>
      storage.listAlertConfigs({ ...query, namespaces: intersectScope(namespaces, query.namespaces) }),
    getAlertConfig: async (kind, name) => within(await storage.getAlertConfig(kind, name)),
    getAlert: async (id) => within(await storage.getAlert(id)),
    listAlerts: async (query) =>
      storage.listAlerts({ ...query, namespaces: intersectScope(namespaces, query.namespaces) }),
    // Only metrics read the counts.
    countAlerts: async () => [],
  }
}

type VisibleQueues = Readonly<{
  /** Null if the queue does not exist or is in another namespace. */
  find(name: QueueName): Promise<Queue | null>
  /** In byte order of their names. */
  list(query: QueuesQuery): Promise<readonly Queue[]>
  listNames(): Promise<readonly QueueName[]>
  /** The rows whose queue is visible. */
  select<T>(rows: readonly T[], queueOf: (row: T) => QueueName): Promise<readonly T[]>
}>

const queuesPerRead = 1_000

function createVisibleQueues(storage: StoreReads, namespaces: readonly string[]): VisibleQueues {
  const find = async (name: QueueName): Promise<Queue | null> => {
    const queue = await storage.getQueue(name)
    return queue !== null && namespaces.includes(queue.namespace) ? queue : null
  }
  const list = async ({ namespace, ...query }: QueuesQuery): Promise<readonly Queue[]> => {
    const wanted = intersectScope(namespaces, namespace === undefined ? undefined : [namespace])
    const pages = await Promise.all(wanted.map((each) => storage.listQueues({ ...query, namespace: each })))
    if (pages.length < 2) return pages[0] ?? []
    return pages
      .flat()
      .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
      .slice(0, query.countMax)
  }
  return {
    find,
    list,
    listNames: async () => {
      const names = new Set<QueueName>()
      for (let from: QueueName | undefined; ; ) {
        const page = await list({ ...(from !== undefined && { from }), countMax: queuesPerRead })
        for (const { name } of page) names.add(name)
        const last = page.at(-1)?.name
        if (last === undefined || page.length < queuesPerRead) return [...names]
        from = last
      }
    },
    select: async (rows, queueOf) => {
      const names = [...new Set(rows.map(queueOf))]
      const found = await Promise.all(names.map(find))
      const visible = new Set(names.filter((_, index) => found[index] !== null))
      return rows.filter((row) => visible.has(queueOf(row)))
    },
  }
}

type QueueReads = Pick<
  StoreReads,
  | 'getQueue'
  | 'listQueues'
  | 'readLeaseCall'
  | 'listQueueDeletions'
  | 'readCounts'
  | 'readQueueCounts'
  | 'readUsage'
  | 'listItems'
  | 'listArchive'
  | 'countOpenSince'
  | 'readOldestOpen'
>

function scopeQueueReads(
  storage: StoreReads,
  visible: VisibleQueues,
  namespaces: readonly string[],
): QueueReads {
  const inQueue = async <T>(name: QueueName, missing: T, read: () => Promise<T>): Promise<T> =>
    (await visible.find(name)) === null ? missing : read()
  const selectNames = async (names: readonly QueueName[] | undefined): Promise<readonly QueueName[]> =>
    names === undefined ? visible.listNames() : visible.select(names, (name) => name)
  return {
    getQueue: (name) => visible.find(name),
    listQueues: (query) => visible.list(query),
    listQueueDeletions: async (countMax) =>
      visible.select(await storage.listQueueDeletions(countMax), ({ name }) => name),
    readLeaseCall: (name) => inQueue(name, null, () => storage.readLeaseCall(name)),
    readCounts: async (query) => {
      if (query.queue !== undefined) return inQueue(query.queue, [], () => storage.readCounts(query))
      return visible.select(await storage.readCounts(query), ({ queue }) => queue)
    },
    readQueueCounts: async (query) =>
      storage.readQueueCounts({ ...query, queues: await selectNames(query.queues) }),
    readUsage: async (query) =>
      namespaces.includes(query.namespace) ? storage.readUsage(query) : { queues: 0, items: 0, bytes: null },
    listItems: (query) => inQueue(query.queue, [], () => storage.listItems(query)),
    listArchive: (query) => inQueue(query.queue, [], () => storage.listArchive(query)),
    countOpenSince: async (since, queues) => storage.countOpenSince(since, await selectNames(queues)),
    readOldestOpen: async (queues) => storage.readOldestOpen(await selectNames(queues)),
  }
}

type LetterReads = Pick<
  StoreReads,
  | 'getLetters'
  | 'getArchivedLetters'
  | 'readPayloadSizes'
  | 'findLettersByUuid'
  | 'findLetterIds'
  | 'readLetterNamespaces'
  | 'findRanges'
  | 'countLetters'
  | 'listGroups'
  | 'listCauses'
  | 'findCauseKey'
  | 'readGroupLabels'
  | 'getGroupJob'
  | 'listGroupJobs'
  | 'listGroupNotices'
  | 'groupArrivals'
  | 'listEdits'
>

function scopeLetterReads(
  storage: StoreReads,
  visible: VisibleQueues,
  namespaces: readonly string[],
): LetterReads {
  const within = <F extends CountedFilter>(filter: F): F => ({
    ...filter,
    namespaces: intersectScope(namespaces, filter.namespaces),
  })
  const listGroups = (query: GroupsQuery) => storage.listGroups({ ...query, filter: within(query.filter) })
  const readNamespaces = async (letterIds: readonly LetterId[]) =>
    (await storage.readLetterNamespaces(letterIds)).filter(({ namespace }) => namespaces.includes(namespace))
  const selectLetters = async <T extends Readonly<{ letterId: LetterId }>>(rows: readonly T[]) => {
    const found = await readNamespaces(rows.map(({ letterId }) => letterId))
    const ids = new Set(found.map(({ letterId }) => letterId))
    return rows.filter(({ letterId }) => ids.has(letterId))
  }
  const selectGroups = async (groupIds: readonly number[]): Promise<readonly number[]> => {
    if (groupIds.length === 0) return []
    const found = await listGroups({ filter: { groupIds }, countMax: groupIds.length, isEmptyToo: true })
    return found.map(({ id }) => id)
  }
  return {
    getLetters: async (letterIds, bytes) =>
      visible.select(await storage.getLetters(letterIds, bytes), ({ queue }) => queue),
    getArchivedLetters: async (letterIds) =>
      visible.select(await storage.getArchivedLetters(letterIds), ({ item }) => item.queue),
    readPayloadSizes: async (letterIds, location) =>
      selectLetters(await storage.readPayloadSizes(letterIds, location)),
    findLettersByUuid: async (uuids) => selectLetters(await storage.findLettersByUuid(uuids)),
    findLetterIds: async (ids) => selectLetters(await storage.findLetterIds(ids)),
    readLetterNamespaces: readNamespaces,
    findRanges: async (query) => storage.findRanges({ ...query, filter: within(query.filter) }),
    countLetters: async (query) => storage.countLetters({ ...query, filter: within(query.filter) }),
    listGroups,
    listCauses: (query) => storage.listCauses({ ...query, filter: within(query.filter) }),
    findCauseKey: async (causeKey) => {
      const found = await storage.findCauseKey(causeKey)
      if (found === null) return null
      const groups = await listGroups({ filter: { causes: [found] }, countMax: 1, isEmptyToo: true })
      return groups.length === 0 ? null : found
    },
    getGroupJob: async (id) => {
      const found = await storage.getGroupJob(id)
      return found === null ? null : ((await visible.select([found], ({ queue }) => queue))[0] ?? null)
    },
    // A page can be shorter than asked for.
    listGroupJobs: async (query) => visible.select(await storage.listGroupJobs(query), ({ queue }) => queue),
    // Only the alerts of the server read notices.
    listGroupNotices: async () => [],
    readGroupLabels: async (groupIds) => {
      const labels = await storage.readGroupLabels(groupIds)
      const shown = new Set(await selectGroups([...new Set(labels.map(({ shownAs }) => shownAs))]))
      return labels.filter(({ shownAs }) => shown.has(shownAs))
    },
    groupArrivals: async (groupIds, since) => storage.groupArrivals(await selectGroups(groupIds), since),
    listEdits: async (letterId) =>
      (await readNamespaces([letterId])).length === 0 ? [] : storage.listEdits(letterId),
  }
}

function scopeCampaignReads(storage: StoreReads, namespaces: readonly string[]): CampaignStore {
  const getCampaign: CampaignStore['getCampaign'] = async (id) => {
    const found = await storage.getCampaign(id)
    return found !== null && namespaces.includes(found.namespace) ? found : null
  }
  return {
    getCampaign,
    listCampaigns: async (query) =>
      storage.listCampaigns({ ...query, namespaces: intersectScope(namespaces, query.namespaces) }),
    listCampaignLetters: async (query) =>
      (await getCampaign(query.campaignId)) === null ? [] : storage.listCampaignLetters(query),
  }
}

const noMessages: MessageCounts = {
  acknowledged: 0,
  dispatched: 0,
  scheduled: 0,
  scheduledDispatched: 0,
  nextScheduledAt: null,
}

/** Webhooks and Kafka clusters belong to the namespace `_system`. */
function scopeDriverReads(
  storage: StoreReads,
  namespaces: readonly string[],
): WebhookStore & DeliveryStore & KafkaStore {
  const hasSystem = namespaces.includes(systemNamespace)
  const within = <T>(nothing: T, read: () => Promise<T>): Promise<T> =>
    hasSystem ? read() : Promise.resolve(nothing)
  return {
    listKafkaPositions: (query) => within([], () => storage.listKafkaPositions(query)),
    listKafkaReplays: (query) => within([], () => storage.listKafkaReplays(query)),
    listUnpassedPartitions: (query) => within([], () => storage.listUnpassedPartitions(query)),
    getProducer: (id) => within(null, () => storage.getProducer(id)),
    getChannel: (id) => within(null, () => storage.getChannel(id)),
    getConsumer: (channelId, id) => within(null, () => storage.getConsumer(channelId, id)),
    listConsumersByQueue: (queues) => within([], () => storage.listConsumersByQueue(queues)),
    listProducers: (page) => within([], () => storage.listProducers(page)),
    listChannels: (page) => within([], () => storage.listChannels(page)),
    listConsumers: (query) => within([], () => storage.listConsumers(query)),
    listConsumersByNumber: (numbers) => within([], () => storage.listConsumersByNumber(numbers)),
    listConsumerCounts: (channelId) => within([], () => storage.listConsumerCounts(channelId)),
    readMessages: (numbers) => within([], () => storage.readMessages(numbers)),
    getMessage: (channelId, id) => within(null, () => storage.getMessage(channelId, id)),
    listMessages: (query) => within([], () => storage.listMessages(query)),
    listScheduled: (query) => within([], () => storage.listScheduled(query)),
    getScheduled: (channelId, id) => within(null, () => storage.getScheduled(channelId, id)),
    countMessages: (channelId) => within(noMessages, () => storage.countMessages(channelId)),
    listPrunable: (query) => within([], () => storage.listPrunable(query)),
    readConfigurationChecksum: () => within(null, () => storage.readConfigurationChecksum()),
    listUndispatched: (query) => within([], () => storage.listUndispatched(query)),
    readJobs: (jobs) => within([], () => storage.readJobs(jobs)),
    listQueuedItems: (query) => within([], () => storage.listQueuedItems(query)),
    readJobTimes: (numbers) => within([], () => storage.readJobTimes(numbers)),
    listDeliveries: (query) => within([], () => storage.listDeliveries(query)),
    getDelivery: (channelId, id) => within(null, () => storage.getDelivery(channelId, id)),
    listAttempts: (query) => within([], () => storage.listAttempts(query)),
    listDeliveryWriters: (query) => within([], () => storage.listDeliveryWriters(query)),
    sumDeliveryFigures: (query) => within([], () => storage.sumDeliveryFigures(query)),
  }
}
