/**
 * The function that executes each command of the contract. Neighbouring commands of one kind are one batch.
 */
import type { Command, Results } from '../contract/storage.ts'
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
import { tryCompletePlain } from './items/complete-plain.ts'
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
import { postponeRedrives } from './letters/postpone.ts'
import { redriveLetters } from './letters/redrive.ts'
import { endRedrives } from './letters/redrive-ends.ts'
import { replanRedrives } from './letters/replan.ts'
import { acquireLock, fence, releaseLock, renewLock } from './locks/locks.ts'
import { deleteQueue } from './queues/delete-queue.ts'
import { recordLeaseCalls } from './queues/lease-calls.ts'
import { cancelQueueDeletion } from './queues/queue-deletions.ts'
import { createQueue, updateQueue } from './queues/queues.ts'
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
type CommandOf<O extends Op> = Extract<Command, { op: O }>
type Handlers = {
  readonly [O in Op]: (
    transaction: Transaction,
    commands: readonly CommandOf<O>[],
  ) => Promise<readonly Results[O][]>
}

export type CommandResult = Results[Op]
/** Neighbouring commands of one kind. */
export type CommandRun = { readonly [O in Op]: { op: O; commands: CommandOf<O>[] } }[Op]

const handlers: Handlers = {
  'create-queue': executeOneByOne(createQueue),
  'update-queue': executeOneByOne(updateQueue),
  'delete-queue': executeOneByOne(deleteQueue),
  'cancel-queue-deletion': executeOneByOne(cancelQueueDeletion),
  'record-lease-calls': executeOneByOne(recordLeaseCalls),
  produce,
  lease,
  complete: async (transaction, commands) =>
    (await tryCompletePlain(transaction, commands)) ?? complete(transaction, commands),
  retry,
  extend,
  unlease,
  advance: executeOneByOne(advance),
  import: importItems,
  delete: executeOneByOne(deleteItems),
  clear: executeOneByOne(clear),
  archive: executeOneByOne(archive),
  audit: writeAudit,
  'acquire-lock': executeOneByOne(acquireLock),
  'renew-lock': executeOneByOne(renewLock),
  'release-lock': executeOneByOne(releaseLock),
  fence: executeOneByOne(fence),
  redrive: executeOneByOne(redriveLetters),
  'end-redrives': endRedrives,
  'cancel-redrives': executeOneByOne(cancelRedrives),
  discard: executeOneByOne(discardLetters),
  restore: executeOneByOne(restoreLetters),
  'edit-letter': executeOneByOne(editLetter),
  'replan-redrives': executeOneByOne(replanRedrives),
  'postpone-redrives': executeOneByOne(postponeRedrives),
  'purge-archive': executeOneByOne(purgeArchive),
  'merge-groups': executeOneByOne(mergeGroupsByHand),
  'merge-causes': executeOneByOne(mergeCausesByHand),
  'pin-title': executeOneByOne(pinTitle),
  'put-group-job': executeOneByOne(putGroupJob),
  'create-split': executeOneByOne(createSplit),
  'regroup-letters': executeOneByOne(regroupLetters),
  'set-group-lifecycle': executeOneByOne(setGroupLifecycle),
  'clear-group-notices': executeOneByOne(clearGroupNotices),
  'correct-leases': executeOneByOne(correctLeases),
  'put-campaign': executeOneByOne(putCampaign),
  'freeze-letters': executeOneByOne(freezeLetters),
  'freeze-ids': executeOneByOne(freezeIds),
  'skip-letters': executeOneByOne(skipLetters),
  'change-access': executeOneByOne(changeAccess),
  'record-key-uses': executeOneByOne(recordKeyUses),
  'create-session': executeOneByOne(createSession),
  'put-producer': executeOneByOne(putProducer),
  'put-channel': executeOneByOne(putChannel),
  'put-consumer': executeOneByOne(putConsumer),
  'delete-consumer': executeOneByOne(deleteConsumer),
  'accept-messages': acceptMessages,
  'dispatch-messages': executeOneByOne(dispatchMessages),
  'put-delivery': executeOneByOne(putDelivery),
  'record-attempts': recordAttempts,
  'record-delivery-figures': executeOneByOne(recordDeliveryFigures),
  'prune-deliveries': executeOneByOne(pruneDeliveries),
  'dispatch-scheduled': executeOneByOne(dispatchScheduled),
  'prune-messages': executeOneByOne(pruneMessages),
  'record-configuration': executeOneByOne(recordConfiguration),
  'take-job': executeOneByOne(takeJob),
  'record-heartbeats': executeOneByOne(recordHeartbeats),
  'forget-workers': executeOneByOne(forgetWorkers),
  'add-event-totals': executeOneByOne(addEventTotals),
  'put-alert-config': executeOneByOne(putAlertConfig),
  'delete-alert-config': executeOneByOne(deleteAlertConfig),
  'put-alerts': executeOneByOne(putAlerts),
  'remove-alerts': executeOneByOne(removeAlerts),
  'prune-alerts': executeOneByOne(pruneAlerts),
  'claim-kafka-partitions': executeOneByOne(claimPartitions),
  'advance-kafka-positions': executeOneByOne(advancePositions),
  'return-letters': executeOneByOne(returnLetters),
  'announce-kafka-replays': executeOneByOne(announceReplays),
  'record-kafka-replays': executeOneByOne(recordReplays),
  'pass-kafka-replays': executeOneByOne(passReplays),
  'forget-kafka-replays': executeOneByOne(forgetReplays),
}

export function splitIntoRuns(commands: readonly Command[]): CommandRun[] {
  const runs: { op: Op; commands: Command[] }[] = []
  for (const command of commands) {
    const last = runs.at(-1)
    if (last?.op === command.op) last.commands.push(command)
    else runs.push({ op: command.op, commands: [command] })
  }
  // Each run has commands of its own op only, which the type of a mixed list cannot express.
  return runs as CommandRun[]
}

export function execute(transaction: Transaction, run: CommandRun): Promise<readonly CommandResult[]> {
  // Each handler takes the commands of its own op, which the type of an indexed union cannot express.
  const handler = handlers[run.op] as (
    transaction: Transaction,
    commands: readonly Command[],
  ) => Promise<readonly CommandResult[]>
  return handler(transaction, run.commands)
}

function executeOneByOne<C, R>(
  executeOne: (transaction: Transaction, command: C) => Promise<R>,
): (transaction: Transaction, commands: readonly C[]) => Promise<R[]> {
  return async (transaction, commands) => {
    const results: R[] = []
    for (const command of commands) results.push(await executeOne(transaction, command))
    return results
  }
}
