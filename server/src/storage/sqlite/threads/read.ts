import { listAccess, readAccessState } from '../access/list-access.ts'
import { readHolder } from '../access/read-holder.ts'
import { getAlertConfig, listAlertConfigs } from '../alerts/alert-configs.ts'
import { countAlerts, getAlert, listAlerts } from '../alerts/alerts.ts'
import { getArchivedLetters } from '../archive/read-archive.ts'
import { listAudit, readAuditChain, readAuditHeads } from '../audit/audit.ts'
import { listCampaignLetters } from '../campaigns/campaign-letters.ts'
import { getCampaign, listCampaigns } from '../campaigns/campaigns.ts'
import type { Database } from '../connection/database.ts'
import { readCounts, readQueueCounts } from '../counts/counts.ts'
import { countLetters, countOpenSince, readOldestOpen } from '../counts/letter-count-queries.ts'
import { readUsage } from '../counts/usage.ts'
import { verifyCounts } from '../counts/verify.ts'
import { compareArrivals } from '../counts/verify-arrivals.ts'
import { listAttempts } from '../deliveries/attempts.ts'
import {
  getDelivery,
  listDeliveries,
  listDeliveryWriters,
  sumDeliveryFigures,
} from '../deliveries/deliveries.ts'
import { getGroupJob, listGroupJobs } from '../groups/group-jobs.ts'
import { listGroupNotices } from '../groups/lifecycles.ts'
import { findCauseKey, listCauses } from '../groups/list-causes.ts'
import { readNextDueAt } from '../items/advance.ts'
import { listArchive, listItems } from '../items/list-items.ts'
import { listPositions } from '../kafka/positions.ts'
import { listReplays, listUnpassedPartitions } from '../kafka/replays.ts'
import { listEdits } from '../letters/edits.ts'
import { findRanges } from '../letters/index-ranges.ts'
import { findLetterIds } from '../letters/letter-ids.ts'
import { groupArrivals, listGroups, readGroupLabels } from '../letters/list-groups.ts'
import {
  findLettersByUuid,
  getLetters,
  readLetterNamespaces,
  readPayloadSizes,
} from '../letters/read-letters.ts'
import { scanLetters } from '../letters/scan-letters.ts'
import { readLeaseCall } from '../queues/lease-calls.ts'
import { listQueueDeletions } from '../queues/queue-deletions.ts'
import { getQueue, listQueues } from '../queues/queues.ts'
import { readConfigurationChecksum } from '../webhooks/configuration.ts'
import {
  getConsumer,
  listConsumerCounts,
  listConsumers,
  listConsumersByNumber,
  listConsumersByQueue,
} from '../webhooks/consumers.ts'
import { getEntity, listEntities } from '../webhooks/entities.ts'
import { listQueuedItems, readJobTimes } from '../webhooks/job-lists.ts'
import { readJobs } from '../webhooks/jobs.ts'
import { countMessages } from '../webhooks/message-counts.ts'
import { getMessage, listMessages, listUndispatched, readMessages } from '../webhooks/messages.ts'
import { listPrunable } from '../webhooks/prune.ts'
import { getScheduled } from '../webhooks/scheduled.ts'
import { listWorkers, readWatchRecords } from '../workers/workers.ts'
import type { ReadCall } from './thread-messages.ts'

type ReadName = ReadCall['read']
type Handlers = {
  readonly [R in ReadName]: (database: Database, call: Extract<ReadCall, { read: R }>) => unknown
}

/** The function that answers each read. */
const handlers = {
  queue: (database, { name }) => getQueue(database, name),
  queues: (database, { query }) => listQueues(database, query),
  'lease-call': (database, { name }) => readLeaseCall(database, name),
  'queue-deletions': (database, { countMax }) => listQueueDeletions(database, countMax),
  counts: (database, { query }) => readCounts(database, query.queue),
  'queue-counts': (database, { query }) => readQueueCounts(database, query),
  usage: (database, { query }) => readUsage(database, query),
  items: (database, { query }) => listItems(database, query),
  archive: (database, { query }) => listArchive(database, query),
  audit: (database, { query }) => listAudit(database, query),
  'audit-chain': (database, call) => readAuditChain(database, call),
  'audit-heads': (database) => readAuditHeads(database),
  'letters-by-id': (database, { letterIds, bytes }) => getLetters(database, letterIds, bytes),
  'archived-letters-by-id': (database, { letterIds }) => getArchivedLetters(database, letterIds),
  'payload-sizes': (database, { letterIds, location }) => readPayloadSizes(database, letterIds, location),
  'letter-namespaces': (database, { letterIds }) => readLetterNamespaces(database, letterIds),
  'letters-by-uuid': (database, { uuids }) => findLettersByUuid(database, uuids),
  'letter-ids': (database, { ids }) => findLetterIds(database, ids),
  'letter-ranges': (database, { query }) => findRanges(database, query),
  'letter-scan': (database, { ranges, bounds }) => scanLetters(database, ranges, bounds),
  'letter-counts': (database, { query }) => countLetters(database, query),
  'open-since': (database, { since, queues }) => countOpenSince(database, since, queues),
  'oldest-open': (database, { queues }) => readOldestOpen(database, queues),
  groups: (database, { query }) => listGroups(database, query),
  'group-labels': (database, { groupIds }) => readGroupLabels(database, groupIds),
  causes: (database, { query }) => listCauses(database, query),
  'group-job': (database, { id }) => getGroupJob(database, id),
  'group-jobs': (database, { query }) => listGroupJobs(database, query),
  'group-notices': (database, { countMax }) => listGroupNotices(database, countMax),
  'cause-key': (database, { causeKey }) => findCauseKey(database, causeKey),
  'group-arrivals': (database, { groupIds, since }) => groupArrivals(database, groupIds, since),
  edits: (database, { letterId }) => listEdits(database, letterId),
  campaign: (database, { id }) => getCampaign(database, id),
  campaigns: (database, { query }) => listCampaigns(database, query),
  'campaign-letters': (database, { query }) => listCampaignLetters(database, query),
  'access-state': (database) => readAccessState(database),
  access: (database, { query }) => listAccess(database, query),
  holder: (database, { credential }) => readHolder(database, credential),
  producer: (database, { id }) => getEntity(database, 'webhook_producers', id) ?? null,
  channel: (database, { id }) => getEntity(database, 'webhook_channels', id) ?? null,
  consumer: (database, { channelId, id }) => getConsumer(database, channelId, id),
  'consumers-by-queue': (database, { queues }) => listConsumersByQueue(database, queues),
  producers: (database, { page }) => listEntities(database, 'webhook_producers', page),
  channels: (database, { page }) => listEntities(database, 'webhook_channels', page),
  consumers: (database, { query }) => listConsumers(database, query),
  'consumer-counts': (database, { channelId }) => listConsumerCounts(database, channelId),
  messages: (database, { numbers }) => readMessages(database, numbers),
  message: (database, { channelId, id }) => getMessage(database, channelId, id),
  'consumers-by-number': (database, { numbers }) => listConsumersByNumber(database, numbers),
  'channel-messages': (database, { query }) => listMessages(database, 'webhook_messages', query),
  'scheduled-messages': (database, { query }) => listMessages(database, 'webhook_scheduled', query),
  'message-counts': (database, { channelId }) => countMessages(database, channelId),
  scheduled: (database, { channelId, id }) => getScheduled(database, channelId, id),
  'prunable-messages': (database, { query }) => listPrunable(database, query),
  'configuration-checksum': (database) => readConfigurationChecksum(database),
  undispatched: (database, { query }) => listUndispatched(database, query),
  'queued-items': (database, { queue, countMax }) => listQueuedItems(database, queue, countMax),
  'job-times': (database, { numbers }) => readJobTimes(database, numbers),
  jobs: (database, { jobs }) => readJobs(database, jobs),
  'kafka-positions': (database, { query }) => listPositions(database, query),
  'kafka-replays': (database, { query }) => listReplays(database, query),
  'unpassed-kafka-partitions': (database, { query }) => listUnpassedPartitions(database, query),
  deliveries: (database, { changedSince }) => listDeliveries(database, changedSince),
  delivery: (database, { channelId, consumerId }) => getDelivery(database, channelId, consumerId),
  attempts: (database, { query }) => listAttempts(database, query),
  'delivery-writers': (database, { since }) => listDeliveryWriters(database, since),
  'delivery-figures': (database, { query }) => sumDeliveryFigures(database, query),
  workers: (database, { query }) => listWorkers(database, query),
  'watch-records': (database) => readWatchRecords(database),
  'alert-configs': (database, { query }) => listAlertConfigs(database, query),
  'alert-config': (database, { kind, name }) => getAlertConfig(database, kind, name),
  alert: (database, { id }) => getAlert(database, id),
  alerts: (database, { query }) => listAlerts(database, query),
  'alert-counts': (database) => countAlerts(database),
  'next-due': (database) => readNextDueAt(database),
  verify: (database, { isRepairableOnly }) =>
    isRepairableOnly ? verifyCounts(database) : [...verifyCounts(database), ...compareArrivals(database)],
} satisfies Handlers

export type ReadResult<R extends ReadName> = ReturnType<(typeof handlers)[R]>

/** Reads in one snapshot. Rows and counts of different moments would differ although both are right. */
export function read(database: Database, call: ReadCall): unknown {
  database.run('begin')
  try {
    // Each handler takes the call of its own name, which the type of an indexed union cannot express.
    const handler = handlers[call.read] as (database: Database, call: ReadCall) => unknown
    return handler(database, call)
  } finally {
    database.run('commit')
  }
}
