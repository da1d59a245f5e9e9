/** The function that executes each command of the contract. */
import type { Command, Results } from '../contract/storage.ts'
import { checkCommand } from '../shared/items/check-command.ts'
import { changeAccess, createSession, recordKeyUses } from './access/change-access.ts'
import { deleteAlertConfig, putAlertConfig } from './alerts/alert-configs.ts'
import { pruneAlerts, putAlerts, removeAlerts } from './alerts/alerts.ts'
import { archive, purgeArchive } from './archive/archive.ts'
import { restoreLetters } from './archive/restore.ts'
import { writeAudit } from './audit/audit.ts'
import { freezeIds, freezeLetters, skipLetters } from './campaigns/campaign-letters.ts'
import { putCampaign } from './campaigns/campaigns.ts'
import { recordAttempts } from './deliveries/attempts.ts'
import { pruneDeliveries, putDelivery, recordDeliveryFigures } from './deliveries/deliveries.ts'
import { mergeCausesByHand, mergeGroupsByHand, pinTitle } from './groups/change-groups.ts'
import { putGroupJob } from './groups/group-jobs.ts'
import { clearGroupNotices, setGroupLifecycle } from './groups/lifecycles.ts'
import { createSplit, regroupLetters } from './groups/regroup.ts'
import { advance } from './items/advance.ts'
import { importItems } from './items/import.ts'
import { lease } from './items/lease.ts'
import { produce } from './items/produce.ts'
import { clear, deleteItems } from './items/remove.ts'
import { complete, correctLeases, extend, retry, unlease } from './items/settle.ts'
import { advancePositions, claimPartitions } from './kafka/positions.ts'
import { announceReplays, forgetReplays, passReplays, recordReplays } from './kafka/replays.ts'
import { returnLetters } from './kafka/return-letters.ts'
import { cancelRedrives } from './letters/cancel-redrives.ts'
import { discardLetters } from './letters/discard.ts'
import { editLetter } from './letters/edits.ts'
import { importLetters } from './letters/import-letters.ts'
import { postponeRedrives } from './letters/postpone.ts'
import { redriveLetters } from './letters/redrive.ts'
import { endRedrives } from './letters/redrive-ends.ts'
import { replanRedrives } from './letters/replan.ts'
import { acquireLock, fence, releaseLock, renewLock } from './locks/locks.ts'
import { deleteQueue } from './queues/delete-queue.ts'
import { recordLeaseCalls } from './queues/lease-calls.ts'
import { cancelQueueDeletion } from './queues/queue-deletions.ts'
import { createQueue, updateQueue } from './queues/queues.ts'
import type { EncodedImportResults, WriterCommand } from './threads/capture-encoding.ts'
import type { Transaction } from './transaction.ts'
import { acceptMessages } from './webhooks/accept.ts'
import { recordConfiguration } from './webhooks/configuration.ts'
import { deleteConsumer, putConsumer } from './webhooks/consumers.ts'
import { dispatchMessages } from './webhooks/dispatch.ts'
import { putChannel, putProducer } from './webhooks/entities.ts'
import { pruneMessages } from './webhooks/prune.ts'
import { dispatchScheduled } from './webhooks/scheduled.ts'
import { takeJob } from './webhooks/take-job.ts'
import { addEventTotals, forgetWorkers, recordHeartbeats } from './workers/workers.ts'

type Op = Command['op']
type Handlers = {
  readonly [O in Op]: (transaction: Transaction, command: Extract<Command, { op: O }>) => Results[O]
}

export type CommandResult = Results[Op] | EncodedImportResults

const handlers: Handlers = {
  'create-queue': ({ database, queueCache }, command) => createQueue(database, queueCache, command),
  'update-queue': ({ database, queueCache }, command) => updateQueue(database, queueCache, command),
  'delete-queue': deleteQueue,
  'cancel-queue-deletion': cancelQueueDeletion,
  'record-lease-calls': recordLeaseCalls,
  produce,
  lease,
  complete,
  retry,
  extend,
  unlease,
  advance,
  import: importItems,
  delete: deleteItems,
  clear,
  archive,
  audit: writeAudit,
  'acquire-lock': acquireLock,
  'renew-lock': renewLock,
  'release-lock': releaseLock,
  fence: ({ database }, command) => fence(database, command),
  redrive: redriveLetters,
  'end-redrives': endRedrives,
  'cancel-redrives': cancelRedrives,
  discard: discardLetters,
  restore: restoreLetters,
  'edit-letter': editLetter,
  'replan-redrives': replanRedrives,
  'postpone-redrives': postponeRedrives,
  'purge-archive': purgeArchive,
  'merge-groups': mergeGroupsByHand,
  'merge-causes': mergeCausesByHand,
  'pin-title': pinTitle,
  'put-group-job': putGroupJob,
  'create-split': createSplit,
  'regroup-letters': regroupLetters,
  'set-group-lifecycle': setGroupLifecycle,
  'clear-group-notices': clearGroupNotices,
  'correct-leases': correctLeases,
  'put-campaign': putCampaign,
  'freeze-letters': freezeLetters,
  'freeze-ids': freezeIds,
  'skip-letters': skipLetters,
  'change-access': changeAccess,
  'record-key-uses': recordKeyUses,
  'create-session': createSession,
  'put-producer': putProducer,
  'put-channel': putChannel,
  'put-consumer': putConsumer,
  'delete-consumer': deleteConsumer,
  'accept-messages': acceptMessages,
  'dispatch-messages': dispatchMessages,
  'put-delivery': putDelivery,
  'record-attempts': recordAttempts,
  'record-delivery-figures': recordDeliveryFigures,
  'prune-deliveries': pruneDeliveries,
  'dispatch-scheduled': dispatchScheduled,
  'prune-messages': pruneMessages,
  'record-configuration': recordConfiguration,
  'take-job': takeJob,
  'record-heartbeats': recordHeartbeats,
  'forget-workers': forgetWorkers,
  'add-event-totals': addEventTotals,
  'put-alert-config': putAlertConfig,
  'delete-alert-config': deleteAlertConfig,
  'put-alerts': putAlerts,
  'remove-alerts': removeAlerts,
  'prune-alerts': pruneAlerts,
  'claim-kafka-partitions': claimPartitions,
  'advance-kafka-positions': advancePositions,
  'return-letters': returnLetters,
  'announce-kafka-replays': announceReplays,
  'record-kafka-replays': recordReplays,
  'pass-kafka-replays': passReplays,
  'forget-kafka-replays': forgetReplays,
}

export function execute(transaction: Transaction, command: WriterCommand): CommandResult {
  // The sender checked these letters before it encoded them.
  if (command.op === 'import-letters') return importLetters(transaction, command)
  checkCommand(command)
  // Each handler takes the command of its own op, which the type of an indexed union cannot express.
  const handler = handlers[command.op] as (transaction: Transaction, command: Command) => Results[Op]
  return handler(transaction, command)
}
