import type { LetterIdRecord } from '../../core/dead-letters/letter-ids.ts'
import type { Item } from '../../core/items/item.ts'
import type { Queue } from '../../core/items/queue.ts'
import { type Instant, toInstant } from '../../core/time/instant.ts'
import type { Worker } from '../../core/watching/worker.ts'
import { KnownError } from '../../errors.ts'
import type {
  AccessQuery,
  AccessRecords,
  AccessState,
  CredentialHolder,
  CredentialRef,
} from '../contract/access.ts'
import type {
  AlertConfigKind,
  AlertConfigsQuery,
  AlertCount,
  AlertsQuery,
  StoredAlert,
  StoredAlertConfig,
} from '../contract/alerts.ts'
import type { ArchivedItem } from '../contract/archive.ts'
import type { AuditHead, AuditQuery, AuditRow, ChainedAuditRow } from '../contract/audit.ts'
import type {
  CampaignLetter,
  CampaignLettersQuery,
  CampaignsQuery,
  StoredCampaign,
} from '../contract/campaigns.ts'
import type {
  CountsQuery,
  PartitionCounts,
  QueueCounts,
  QueueCountsQuery,
  Usage,
  UsageQuery,
} from '../contract/counts.ts'
import type {
  AttemptsQuery,
  ConsumerFigures,
  FiguresQuery,
  StoredAttempt,
  StoredDelivery,
} from '../contract/deliveries.ts'
import type { Difference } from '../contract/difference.ts'
import type {
  CauseCount,
  CausesQuery,
  GroupJobsQuery,
  GroupLabel,
  GroupNotice,
  StoredGroupJob,
} from '../contract/groups.ts'
import type { ItemsQuery } from '../contract/items.ts'
import type {
  KafkaPosition,
  KafkaPositionsQuery,
  KafkaReplay,
  KafkaReplaysQuery,
  UnpassedPartition,
  UnpassedPartitionsQuery,
} from '../contract/kafka.ts'
import type {
  GroupArrivals,
  GroupFacts,
  GroupsQuery,
  LetterCount,
  LetterCountsQuery,
  LetterEdit,
  LetterLocation,
  LetterNamespace,
  LetterRanges,
  ListedLetter,
  OldestOpen,
  PayloadSize,
  RangesQuery,
} from '../contract/letters.ts'
import type { HeldLock } from '../contract/locks.ts'
import type { QueueDeletion, QueuesQuery } from '../contract/queues.ts'
import type { Command, ResultsOf, Storage, StoreClock, StoreReads } from '../contract/storage.ts'
import type {
  Channel,
  Consumer,
  ConsumerCounts,
  ConsumersQuery,
  JobLocation,
  JobState,
  JobTimes,
  Message,
  MessageCounts,
  MessageHead,
  MessagesQuery,
  PageQuery,
  Producer,
  PrunableMessage,
  PruneQuery,
  ScheduledMessage,
  UndispatchedQuery,
} from '../contract/webhooks.ts'
import type { WatchRecords, WorkersQuery } from '../contract/workers.ts'
import type { StoreOptions, StoreTarget } from '../open-storage.ts'
import { mayUseReserve } from '../shared/may-use-reserve.ts'
import { listAccess, readAccessState } from './access/list-access.ts'
import { readHolder } from './access/read-holder.ts'
import { getAlertConfig, listAlertConfigs } from './alerts/alert-configs.ts'
import { countAlerts, getAlert, listAlerts } from './alerts/alerts.ts'
import { getArchivedLetters } from './archive/read-archive.ts'
import { listAudit, readAuditChain, readAuditHeads } from './audit/audit.ts'
import { listCampaignLetters } from './campaigns/campaign-letters.ts'
import { getCampaign, listCampaigns } from './campaigns/campaigns.ts'
import type { CommandResult } from './commands.ts'
import { Announcements } from './connection/announcements.ts'
import { Connections } from './connection/connections.ts'
import { createDatabaseClock, createGivenClock } from './connection/database-clock.ts'
import { DiskSpace } from './connection/disk-space.ts'
import { toKnownError } from './connection/errors.ts'
import { Vacuum } from './connection/vacuum.ts'
import { readCounts, readQueueCounts } from './counts/counts.ts'
import { countLetters, countOpenSince, readOldestOpen } from './counts/letter-count-queries.ts'
import { FirstMinuteCache } from './counts/time-bucket-retention.ts'
import { readUsage } from './counts/usage.ts'
import { reconcileCounts, verifyCounts } from './counts/verify.ts'
import { listAttempts } from './deliveries/attempts.ts'
import {
  getDelivery,
  listDeliveries,
  listDeliveryWriters,
  sumDeliveryFigures,
} from './deliveries/deliveries.ts'
import { GroupCommit } from './group-commit.ts'
import { getGroupJob, listGroupJobs } from './groups/group-jobs.ts'
import { listGroupNotices } from './groups/lifecycles.ts'
import { findCauseKey, listCauses } from './groups/list-causes.ts'
import { readNextDueAt } from './items/advance.ts'
import { LeaseCursors } from './items/lease-cursors.ts'
import { listArchive, listItems } from './items/list-items.ts'
import { listPositions } from './kafka/positions.ts'
import { listReplays, listUnpassedPartitions } from './kafka/replays.ts'
import { listEdits } from './letters/edits.ts'
import { GroupCache } from './letters/groups.ts'
import { RepeatedImports } from './letters/import-letters.ts'
import { findLetterIds } from './letters/letter-ids.ts'
import { PrefetchedLetters } from './letters/letter-snapshots.ts'
import { groupArrivals, listGroups, readGroupLabels } from './letters/list-groups.ts'
import {
  findLettersByUuid,
  getLetters,
  readLetterNamespaces,
  readPayloadSizes,
} from './letters/read-letters.ts'
import { findRanges } from './letters/scan-letters.ts'
import { checkReadable, migrate } from './migrations/migrate.ts'
import { readLeaseCall } from './queues/lease-calls.ts'
import { QueueCache } from './queues/queue-cache.ts'
import { listQueueDeletions } from './queues/queue-deletions.ts'
import { getQueue, listQueues } from './queues/queues.ts'
import { CountSlots, type StoreContext } from './store-context.ts'
import { readConfigurationChecksum } from './webhooks/configuration.ts'
import {
  getConsumer,
  listConsumerCounts,
  listConsumers,
  listConsumersByNumber,
  listConsumersByQueue,
} from './webhooks/consumers.ts'
import { getEntity, listEntities } from './webhooks/entities.ts'
import { listQueuedItems, readJobTimes } from './webhooks/job-lists.ts'
import { readJobs } from './webhooks/jobs.ts'
import { countMessages } from './webhooks/message-counts.ts'
import { getMessage, listMessages, listUndispatched, readMessages } from './webhooks/messages.ts'
import { listPrunable } from './webhooks/prune.ts'
import { getScheduled } from './webhooks/scheduled.ts'
import { listWorkers, readWatchRecords } from './workers/workers.ts'
import { write } from './write.ts'

const poolMaxDefault = 10
const connectTimeoutMsDefault = 10_000

type PostgresTarget = Extract<StoreTarget, { kind: 'postgres' }>

export async function openPostgres(target: PostgresTarget, options: StoreOptions = {}): Promise<Storage> {
  if (options.isReadOnly === true) return open(target, options, checkReadable)
  return open(target, options, async (connections) => {
    const { isNew } = await migrate(connections, { mustExist: options.mustExist ?? false })
    if (isNew) options.onCreated?.()
  })
}

export async function openPostgresToRead(target: PostgresTarget, options: StoreOptions): Promise<StoreReads> {
  return open(target, { ...options, isReadOnly: true }, checkReadable)
}

async function open(
  target: PostgresTarget,
  options: StoreOptions,
  prepareSchema: (connections: Connections) => Promise<void>,
): Promise<Storage> {
  const random = options.random ?? Math.random
  const clock =
    options.clock === undefined
      ? createDatabaseClock(options.machineClock ?? { now: () => toInstant(new Date()) })
      : createGivenClock(options.clock)
  const connections = new Connections({
    url: target.url,
    credentials: target.credentials,
    tls: target.tls,
    poolMax: options.postgresPoolMax ?? poolMaxDefault,
    connectTimeoutMs: options.postgresConnectTimeoutMs ?? connectTimeoutMsDefault,
    idleMax: options.postgresIdleMax ?? 0,
    lifetimeMs: options.postgresLifetimeMs ?? 0,
    isReadOnly: options.isReadOnly ?? false,
    onClockSample: clock.observe,
  })
  const vacuum = new Vacuum(connections)
  const context: StoreContext = {
    vacuum,
    connections,
    random,
    clock,
    queueCache: new QueueCache(),
    cursors: new LeaseCursors(),
    prefetchedLetters: new PrefetchedLetters(),
    groups: new GroupCache(),
    firstMinute: new FirstMinuteCache(),
    repeats: new RepeatedImports(),
    slots: new CountSlots(random),
  }
  const storage = new PostgresStorage(context, options.isReadOnly ?? false)
  try {
    await prepareSchema(connections)
    return storage
  } catch (error) {
    await storage.close()
    throw toKnownError(error, connections.address)
  }
}

class PostgresStorage implements Storage {
  readonly kind = 'postgres'
  readonly clock: StoreClock
  readonly #store: StoreContext
  readonly #isReadOnly: boolean
  readonly #groupCommit: GroupCommit
  readonly #announcements: Announcements
  readonly #inProgress = new Set<Promise<void>>()
  readonly #space: DiskSpace
  #closing: Promise<void> | undefined

  constructor(store: StoreContext, isReadOnly: boolean) {
    this.#store = store
    this.clock = store.clock
    this.#isReadOnly = isReadOnly
    this.#announcements = new Announcements(store.connections)
    this.#groupCommit = new GroupCommit((commands) => write(store, commands))
    this.#space = new DiskSpace(store.connections)
  }

  async write<const C extends readonly Command[]>(commands: C): Promise<ResultsOf<C>> {
    if (this.#isReadOnly) throw this.#refuseWrite(commands.map(({ op }) => op).join(', '))
    const results = await this.#run(() => this.#writeWithSpace(commands))
    return results as unknown as ResultsOf<C>
  }

  /** On a full disk: only the writes that may use the reserved space. */
  async #writeWithSpace(commands: readonly Command[]): Promise<CommandResult[]> {
    if (this.#space.isFull && !mayUseReserve(commands)) await this.#space.expectSpace()
    try {
      return await this.#groupCommit.write(commands)
    } catch (error) {
      if (!isStoreFull(toKnownError(error, this.#store.connections.address))) throw error
      await this.#space.release()
      if (!mayUseReserve(commands)) throw error
      return this.#groupCommit.write(commands)
    }
  }

  getQueue(name: string): Promise<Queue | null> {
    return this.#run(() => getQueue(this.#store.connections, name))
  }

  listQueueDeletions(countMax: number): Promise<readonly QueueDeletion[]> {
    return this.#run(() => listQueueDeletions(this.#store.connections, countMax))
  }

  readLeaseCall(name: string): Promise<Instant | null> {
    return this.#run(() => readLeaseCall(this.#store.connections, name))
  }

  listKafkaPositions(query: KafkaPositionsQuery): Promise<readonly KafkaPosition[]> {
    return this.#run(() => listPositions(this.#store.connections, query))
  }

  listKafkaReplays(query: KafkaReplaysQuery): Promise<readonly KafkaReplay[]> {
    return this.#run(() => listReplays(this.#store.connections, query))
  }

  listUnpassedPartitions(query: UnpassedPartitionsQuery): Promise<readonly UnpassedPartition[]> {
    return this.#run(() => listUnpassedPartitions(this.#store.connections, query))
  }

  listQueues(query: QueuesQuery): Promise<readonly Queue[]> {
    return this.#run(() => listQueues(this.#store.connections, query))
  }

  readQueueCounts(query: QueueCountsQuery): Promise<readonly QueueCounts[]> {
    return this.#run(() => readQueueCounts(this.#store.connections, query))
  }

  readUsage(query: UsageQuery): Promise<Usage> {
    return this.#run(() => readUsage(this.#store.connections, query))
  }

  readCounts(query: CountsQuery): Promise<readonly PartitionCounts[]> {
    return this.#run(() => readCounts(this.#store.connections, query))
  }

  listItems(query: ItemsQuery): Promise<readonly Item[]> {
    return this.#run(() => listItems(this.#store.connections, query))
  }

  listArchive(query: ItemsQuery): Promise<readonly ArchivedItem[]> {
    return this.#run(() => listArchive(this.#store.connections, query))
  }

  listAudit(query: AuditQuery): Promise<readonly AuditRow[]> {
    return this.#run(() => listAudit(this.#store.connections, query))
  }

  readAuditChain(
    query: Readonly<{ afterId: number; countMax: number }>,
  ): Promise<readonly ChainedAuditRow[]> {
    return this.#run(() => readAuditChain(this.#store.connections, query))
  }

  readAuditHeads(): Promise<readonly AuditHead[]> {
    return this.#run(() => readAuditHeads(this.#store.connections))
  }

  getLetters(letterIds: readonly string[], bytes?: 'head' | 'all'): Promise<readonly ListedLetter[]> {
    return this.#run(() => getLetters(this.#store.connections, letterIds, bytes))
  }

  getArchivedLetters(letterIds: readonly string[]): Promise<readonly ArchivedItem[]> {
    return this.#run(() => getArchivedLetters(this.#store.connections, letterIds))
  }

  readPayloadSizes(letterIds: readonly string[], location?: LetterLocation): Promise<readonly PayloadSize[]> {
    return this.#run(() => readPayloadSizes(this.#store.connections, letterIds, location))
  }

  findLettersByUuid(
    uuids: readonly string[],
  ): Promise<readonly Readonly<{ uuid: string; letterId: string }>[]> {
    return this.#run(() => findLettersByUuid(this.#store.connections, uuids))
  }

  findLetterIds(ids: readonly string[]): Promise<readonly LetterIdRecord[]> {
    return this.#run(() => findLetterIds(this.#store.connections, ids))
  }

  async findRanges(query: RangesQuery): Promise<LetterRanges> {
    const { connections } = this.#store
    const reader = { query: connections.read.bind(connections) }
    const ranges = await this.#run(() => findRanges(reader, query))
    return { scan: (bounds) => this.#run(() => ranges.scan(bounds)) }
  }

  countLetters(query: LetterCountsQuery): Promise<readonly LetterCount[]> {
    return this.#run(() => countLetters(this.#store.connections, query))
  }

  countOpenSince(since: Instant, queues?: readonly string[]): Promise<number> {
    return this.#run(() => countOpenSince(this.#store.connections, since, queues))
  }

  readOldestOpen(queues: readonly string[]): Promise<readonly OldestOpen[]> {
    return this.#run(() => readOldestOpen(this.#store.connections, queues))
  }

  listGroups(query: GroupsQuery): Promise<readonly GroupFacts[]> {
    return this.#run(() => listGroups(this.#store.connections, query))
  }

  readGroupLabels(groupIds: readonly number[]): Promise<readonly GroupLabel[]> {
    return this.#run(() => readGroupLabels(this.#store.connections, groupIds))
  }

  listCauses(query: CausesQuery): Promise<readonly CauseCount[]> {
    return this.#run(() => listCauses(this.#store.connections, query))
  }

  getGroupJob(id: string): Promise<StoredGroupJob | null> {
    return this.#run(() => getGroupJob(this.#store.connections, id))
  }

  listGroupJobs(query: GroupJobsQuery): Promise<readonly StoredGroupJob[]> {
    return this.#run(() => listGroupJobs(this.#store.connections, query))
  }

  listGroupNotices({ countMax }: Readonly<{ countMax: number }>): Promise<readonly GroupNotice[]> {
    return this.#run(() => listGroupNotices(this.#store.connections, countMax))
  }

  findCauseKey(causeKey: string): Promise<string | null> {
    return this.#run(() => findCauseKey(this.#store.connections, causeKey))
  }

  groupArrivals(groupIds: readonly number[], since: Instant): Promise<readonly GroupArrivals[]> {
    return this.#run(() => groupArrivals(this.#store.connections, groupIds, since))
  }

  readLetterNamespaces(letterIds: readonly string[]): Promise<readonly LetterNamespace[]> {
    return this.#run(() => readLetterNamespaces(this.#store.connections, letterIds))
  }

  listEdits(letterId: string): Promise<readonly LetterEdit[]> {
    return this.#run(() => listEdits(this.#store.connections, letterId))
  }

  prefetchLetters(letterIds: readonly string[]): Promise<void> {
    const { connections, prefetchedLetters } = this.#store
    return this.#run(() => connections.use((connection) => prefetchedLetters.prefetch(connection, letterIds)))
  }

  getCampaign(id: string): Promise<StoredCampaign | null> {
    return this.#run(() => getCampaign(this.#store.connections, id))
  }

  listCampaigns(query: CampaignsQuery): Promise<readonly StoredCampaign[]> {
    return this.#run(() => listCampaigns(this.#store.connections, query))
  }

  listCampaignLetters(query: CampaignLettersQuery): Promise<readonly CampaignLetter[]> {
    return this.#run(() => listCampaignLetters(this.#store.connections, query))
  }

  readAccessState(): Promise<AccessState> {
    return this.#run(() => readAccessState(this.#store.connections))
  }

  listAccess<const Q extends AccessQuery>(query: Q): Promise<readonly AccessRecords[Q['of']][]> {
    return this.#run(() => listAccess(this.#store.connections, query))
  }

  readHolder(credential: CredentialRef): Promise<CredentialHolder | null> {
    return this.#run(() => readHolder(this.#store.connections, credential))
  }

  getProducer(id: string): Promise<Producer | null> {
    return this.#run(() => getEntity(this.#store.connections, 'webhook_producers', id))
  }

  getChannel(id: string): Promise<Channel | null> {
    return this.#run(() => getEntity(this.#store.connections, 'webhook_channels', id))
  }

  getConsumer(channelId: string, id: string): Promise<Consumer | null> {
    return this.#run(() => getConsumer(this.#store.connections, channelId, id))
  }

  listConsumersByQueue(queues: readonly string[]): Promise<readonly Consumer[]> {
    return this.#run(() => listConsumersByQueue(this.#store.connections, queues))
  }

  listProducers(page: PageQuery): Promise<readonly Producer[]> {
    return this.#run(() => listEntities(this.#store.connections, 'webhook_producers', page))
  }

  listChannels(page: PageQuery): Promise<readonly Channel[]> {
    return this.#run(() => listEntities(this.#store.connections, 'webhook_channels', page))
  }

  listConsumers(query: ConsumersQuery): Promise<readonly Consumer[]> {
    return this.#run(() => listConsumers(this.#store.connections, query))
  }

  listConsumerCounts(channelId?: string): Promise<readonly ConsumerCounts[]> {
    return this.#run(() => listConsumerCounts(this.#store.connections, channelId))
  }

  readMessages(numbers: readonly number[]): Promise<readonly Message[]> {
    return this.#run(() => readMessages(this.#store.connections, numbers))
  }

  getMessage(channelId: string, id: string): Promise<Message | null> {
    return this.#run(() => getMessage(this.#store.connections, channelId, id))
  }

  listConsumersByNumber(numbers: readonly number[]): Promise<readonly Consumer[]> {
    return this.#run(() => listConsumersByNumber(this.#store.connections, numbers))
  }

  listMessages(query: MessagesQuery): Promise<readonly MessageHead[]> {
    return this.#run(() => listMessages(this.#store.connections, 'webhook_messages', query))
  }

  listScheduled(query: MessagesQuery): Promise<readonly MessageHead[]> {
    return this.#run(() => listMessages(this.#store.connections, 'webhook_scheduled', query))
  }

  countMessages(channelId: string): Promise<MessageCounts> {
    return this.#run(() => countMessages(this.#store.connections, channelId))
  }

  getScheduled(channelId: string, id: string): Promise<ScheduledMessage | null> {
    return this.#run(() => getScheduled(this.#store.connections, channelId, id))
  }

  listPrunable(query: PruneQuery): Promise<readonly PrunableMessage[]> {
    return this.#run(() => listPrunable(this.#store.connections, query))
  }

  readConfigurationChecksum(): Promise<string | null> {
    return this.#run(() => readConfigurationChecksum(this.#store.connections))
  }

  listUndispatched(query: UndispatchedQuery): Promise<readonly number[]> {
    return this.#run(() => listUndispatched(this.#store.connections, query))
  }

  listQueuedItems({
    queue,
    countMax,
  }: Readonly<{ queue: string; countMax: number }>): Promise<readonly Item[]> {
    return this.#run(() => listQueuedItems(this.#store.connections, queue, countMax))
  }

  readJobTimes(numbers: readonly number[]): Promise<readonly JobTimes[]> {
    return this.#run(() => readJobTimes(this.#store.connections, numbers))
  }

  readJobs(jobs: readonly JobLocation[]): Promise<readonly JobState[]> {
    return this.#run(() =>
      readJobs((statement, values) => this.#store.connections.read(statement, values), jobs),
    )
  }

  listDeliveries({ changedSince }: Readonly<{ changedSince?: Instant }>): Promise<readonly StoredDelivery[]> {
    return this.#run(() => listDeliveries(this.#store.connections, changedSince))
  }

  getDelivery(channelId: string, consumerId: string): Promise<StoredDelivery | null> {
    return this.#run(() => getDelivery(this.#store.connections, channelId, consumerId))
  }

  listAttempts(query: AttemptsQuery): Promise<readonly StoredAttempt[]> {
    return this.#run(() => listAttempts(this.#store.connections, query))
  }

  listDeliveryWriters({ since }: Readonly<{ since: Instant }>): Promise<readonly string[]> {
    return this.#run(() => listDeliveryWriters(this.#store.connections, since))
  }

  sumDeliveryFigures(query: FiguresQuery): Promise<readonly ConsumerFigures[]> {
    return this.#run(() => sumDeliveryFigures(this.#store.connections, query))
  }

  listWorkers(query: WorkersQuery): Promise<readonly Worker[]> {
    return this.#run(() => listWorkers(this.#store.connections, query))
  }

  readWatchRecords(): Promise<WatchRecords> {
    return this.#run(() => readWatchRecords(this.#store.connections))
  }

  listAlertConfigs(query: AlertConfigsQuery): Promise<readonly StoredAlertConfig[]> {
    return this.#run(() => listAlertConfigs(this.#store.connections, query))
  }

  getAlertConfig(kind: AlertConfigKind, name: string): Promise<StoredAlertConfig | null> {
    return this.#run(() => getAlertConfig(this.#store.connections, kind, name))
  }

  getAlert(id: string): Promise<StoredAlert | null> {
    return this.#run(() => getAlert(this.#store.connections, id))
  }

  listAlerts(query: AlertsQuery): Promise<readonly StoredAlert[]> {
    return this.#run(() => listAlerts(this.#store.connections, query))
  }

  countAlerts(): Promise<readonly AlertCount[]> {
    return this.#run(() => countAlerts(this.#store.connections))
  }

  readNextDueAt(): Promise<Instant | null> {
    return this.#run(() => readNextDueAt(this.#store.connections))
  }

  verify(): Promise<readonly Difference[]> {
    return this.#run(() => verifyCounts(this.#store.connections))
  }

  async reconcile(lock?: HeldLock): Promise<readonly Difference[]> {
    if (this.#isReadOnly) throw this.#refuseWrite('reconcile')
    return this.#run(() => reconcileCounts(this.#store.connections, lock, this.#store.clock.now()))
  }

  announce(queues: readonly string[]): Promise<void> {
    return this.#run(() => this.#announcements.announce(queues))
  }

  onAnnounced(listener: (queues: readonly string[]) => void): () => void {
    return this.#announcements.listen(listener)
  }

  async ping(): Promise<void> {
    await this.#run(() => this.#store.connections.ping())
    if (this.#isReadOnly) return
    const isFull = this.#space.isFull
    const checked = this.#run(() => this.#space.check())
    // Filling the reserve may take longer than a ping may.
    if (isFull) await checked
    else checked.catch(() => {})
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await Promise.all(this.#inProgress)
    await this.#announcements.close()
    await this.#store.vacuum.stop()
    await this.#store.connections.close()
  }

  #refuseWrite(write: string): KnownError {
    const { address } = this.#store.connections
    return new KnownError('READ_ONLY', `${address} is open for reading only; this would write: ${write}`)
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    const { address } = this.#store.connections
    if (this.#closing !== undefined)
      throw new KnownError('STORE_UNAVAILABLE', `the connection to ${address} is closed`)
    // The set holds this promise and not the work, because a Set can keep a deleted value, and so its result,
    // in memory.
    let end = () => {}
    const call = new Promise<void>((resolve) => {
      end = resolve
    })
    this.#inProgress.add(call)
    try {
      return await work()
    } catch (error) {
      throw toKnownError(error, address)
    } finally {
      this.#inProgress.delete(call)
      end()
    }
  }
}

function isStoreFull(error: unknown): boolean {
  return error instanceof KnownError && error.code === 'STORE_FULL'
}
