import { type Clock, toInstant } from '../../core/time/instant.ts'
import type { AccessQuery, AccessRecords, AccessStore } from '../contract/access.ts'
import type { AlertStore } from '../contract/alerts.ts'
import type { DeliveryStore } from '../contract/deliveries.ts'
import type { QueueStore } from '../contract/queues.ts'
import type { Command, ResultsOf, Storage, StoreReads } from '../contract/storage.ts'
import type { WebhookStore } from '../contract/webhooks.ts'
import type { WorkerStore } from '../contract/workers.ts'
import type { StoreOptions, StoreTarget } from '../open-storage.ts'
import type { Backend } from './backend.ts'
import { MemoryBackend } from './memory-backend.ts'
import { decodeResult, encodeCommand } from './threads/capture-encoding.ts'
import { FileBackend } from './threads/file-backend.ts'
import type { ReadResult } from './threads/read.ts'
import { ReadOnlyBackend } from './threads/read-only-backend.ts'
import type { ReadCall } from './threads/thread-messages.ts'

type SqliteTarget = Exclude<StoreTarget, { kind: 'postgres' }>
type SqliteFile = Extract<StoreTarget, { kind: 'sqlite' }>

export async function openSqlite(target: SqliteTarget, options: StoreOptions = {}): Promise<Storage> {
  const clock = chooseClock(options)
  return createStorage(await openBackend(target, options, clock), clock)
}

export async function openSqliteToRead({ path }: SqliteFile): Promise<StoreReads> {
  return createStorage(await ReadOnlyBackend.open(path), chooseClock({}))
}

function chooseClock({ clock, machineClock }: StoreOptions): Clock {
  return clock ?? machineClock ?? { now: () => toInstant(new Date()) }
}

type Ask = <const C extends ReadCall>(call: C) => Promise<ReadResult<C['read']>>

function createDeliveryReads(ask: Ask): DeliveryStore {
  return {
    listDeliveries: ({ changedSince }) => ask({ read: 'deliveries', changedSince }),
    getDelivery: (channelId, consumerId) => ask({ read: 'delivery', channelId, consumerId }),
    listAttempts: (query) => ask({ read: 'attempts', query }),
    listDeliveryWriters: ({ since }) => ask({ read: 'delivery-writers', since }),
    sumDeliveryFigures: (query) => ask({ read: 'delivery-figures', query }),
  }
}

function createWorkerReads(ask: Ask): WorkerStore {
  return {
    listWorkers: (query) => ask({ read: 'workers', query }),
    readWatchRecords: () => ask({ read: 'watch-records' }),
  }
}

function createAlertReads(ask: Ask): AlertStore {
  return {
    listAlertConfigs: (query) => ask({ read: 'alert-configs', query }),
    getAlertConfig: (kind, name) => ask({ read: 'alert-config', kind, name }),
    getAlert: (id) => ask({ read: 'alert', id }),
    listAlerts: (query) => ask({ read: 'alerts', query }),
    countAlerts: () => ask({ read: 'alert-counts' }),
  }
}

function createStorage(backend: Backend, clock: Clock): Storage {
  const ask: Ask = (call) => backend.read(call) as Promise<ReadResult<(typeof call)['read']>>
  return {
    ...createQueueReads(ask),
    ...createDeliveryReads(ask),
    ...createWorkerReads(ask),
    ...createAlertReads(ask),
    kind: 'sqlite',
    // A SQLite store has no clock: its only server goes by the clock of its machine.
    clock: { now: () => clock.now(), readMachineOffsetUs: () => null },
    write: async <const C extends readonly Command[]>(commands: C) => {
      const encoded = commands.map(encodeCommand)
      const results = await backend.write(encoded)
      return encoded.map((command, index) => decodeResult(command, results[index])) as ResultsOf<C>
    },
    readCounts: (query) => ask({ read: 'counts', query }),
    readQueueCounts: (query) => ask({ read: 'queue-counts', query }),
    readUsage: (query) => ask({ read: 'usage', query }),
    listItems: (query) => ask({ read: 'items', query }),
    listArchive: (query) => ask({ read: 'archive', query }),
    listAudit: (query) => ask({ read: 'audit', query }),
    readAuditChain: (query) => ask({ read: 'audit-chain', ...query }),
    readAuditHeads: () => ask({ read: 'audit-heads' }),
    getLetters: (letterIds, bytes = 'all') => ask({ read: 'letters-by-id', letterIds, bytes }),
    getArchivedLetters: (letterIds) => ask({ read: 'archived-letters-by-id', letterIds }),
    readPayloadSizes: (letterIds, location) => ask({ read: 'payload-sizes', letterIds, location }),
    findLettersByUuid: (uuids) => ask({ read: 'letters-by-uuid', uuids }),
    findLetterIds: (ids) => ask({ read: 'letter-ids', ids }),
    findRanges: async (query) => {
      const ranges = await ask({ read: 'letter-ranges', query })
      return { scan: (bounds) => ask({ read: 'letter-scan', ranges, bounds }) }
    },
    countLetters: (query) => ask({ read: 'letter-counts', query }),
    countOpenSince: (since, queues) => ask({ read: 'open-since', since, queues }),
    readOldestOpen: (queues) => ask({ read: 'oldest-open', queues }),
    listGroups: (query) => ask({ read: 'groups', query }),
    readGroupLabels: (groupIds) => ask({ read: 'group-labels', groupIds }),
    listCauses: (query) => ask({ read: 'causes', query }),
    getGroupJob: (id) => ask({ read: 'group-job', id }),
    listGroupJobs: (query) => ask({ read: 'group-jobs', query }),
    listGroupNotices: ({ countMax }) => ask({ read: 'group-notices', countMax }),
    findCauseKey: (causeKey) => ask({ read: 'cause-key', causeKey }),
    groupArrivals: (groupIds, since) => ask({ read: 'group-arrivals', groupIds, since }),
    readLetterNamespaces: (letterIds) => ask({ read: 'letter-namespaces', letterIds }),
    listEdits: (letterId) => ask({ read: 'edits', letterId }),
    getCampaign: (id) => ask({ read: 'campaign', id }),
    listCampaigns: (query) => ask({ read: 'campaigns', query }),
    // The writer reads each letter without a round trip, so there is nothing to read ahead.
    prefetchLetters: async () => {},
    listCampaignLetters: (query) => ask({ read: 'campaign-letters', query }),
    ...createAccessReads(ask),
    ...createWebhookReads(ask),
    listKafkaPositions: (query) => ask({ read: 'kafka-positions', query }),
    listKafkaReplays: (query) => ask({ read: 'kafka-replays', query }),
    listUnpassedPartitions: (query) => ask({ read: 'unpassed-kafka-partitions', query }),
    readNextDueAt: () => ask({ read: 'next-due' }),
    verify: () => ask({ read: 'verify', isRepairableOnly: false }),
    reconcile: (lock) => backend.reconcile(lock) as ReturnType<Storage['reconcile']>,
    // A SQLite store has one server, so there is no other server to notify.
    announce: async () => {},
    onAnnounced: () => () => {},
    ping: async () => {
      await ask({ read: 'queue', name: '' })
      await backend.checkSpace()
    },
    close: () => backend.close(),
  }
}

function createQueueReads(ask: Ask): QueueStore {
  return {
    getQueue: (name) => ask({ read: 'queue', name }),
    listQueues: (query) => ask({ read: 'queues', query }),
    readLeaseCall: (name) => ask({ read: 'lease-call', name }),
    listQueueDeletions: (countMax) => ask({ read: 'queue-deletions', countMax }),
  }
}

function createAccessReads(ask: Ask): AccessStore {
  return {
    readAccessState: () => ask({ read: 'access-state' }),
    listAccess: async <const Q extends AccessQuery>(query: Q) =>
      (await ask({ read: 'access', query })) as AccessRecords[Q['of']][],
    readHolder: (credential) => ask({ read: 'holder', credential }),
  }
}

function createWebhookReads(ask: Ask): WebhookStore {
  return {
    getProducer: (id) => ask({ read: 'producer', id }),
    getChannel: (id) => ask({ read: 'channel', id }),
    getConsumer: (channelId, id) => ask({ read: 'consumer', channelId, id }),
    listConsumersByQueue: (queues) => ask({ read: 'consumers-by-queue', queues }),
    listProducers: (page) => ask({ read: 'producers', page }),
    listChannels: (page) => ask({ read: 'channels', page }),
    listConsumers: (query) => ask({ read: 'consumers', query }),
    listConsumerCounts: (channelId) => ask({ read: 'consumer-counts', channelId }),
    readMessages: (numbers) => ask({ read: 'messages', numbers }),
    getMessage: (channelId, id) => ask({ read: 'message', channelId, id }),
    listConsumersByNumber: (numbers) => ask({ read: 'consumers-by-number', numbers }),
    listMessages: (query) => ask({ read: 'channel-messages', query }),
    listScheduled: (query) => ask({ read: 'scheduled-messages', query }),
    countMessages: (channelId) => ask({ read: 'message-counts', channelId }),
    getScheduled: (channelId, id) => ask({ read: 'scheduled', channelId, id }),
    listPrunable: (query) => ask({ read: 'prunable-messages', query }),
    readConfigurationChecksum: () => ask({ read: 'configuration-checksum' }),
    listUndispatched: (query) => ask({ read: 'undispatched', query }),
    listQueuedItems: ({ queue, countMax }) => ask({ read: 'queued-items', queue, countMax }),
    readJobTimes: (numbers) => ask({ read: 'job-times', numbers }),
    readJobs: (jobs) => ask({ read: 'jobs', jobs }),
  }
}

async function openBackend(target: SqliteTarget, options: StoreOptions, clock: Clock): Promise<Backend> {
  const now = () => clock.now()
  if (target.kind === 'memory') return new MemoryBackend(options.random ?? Math.random, now)
  return FileBackend.open(target.path, {
    synchronous: options.sqliteSynchronous ?? 'full',
    lockWaitMs: options.sqliteLockWaitMs ?? 0,
    mustExist: options.mustExist ?? false,
    onCreated: options.onCreated ?? (() => {}),
    now,
  })
}
