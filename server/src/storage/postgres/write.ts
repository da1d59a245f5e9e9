import { setTimeout as sleep } from 'node:timers/promises'
import { KnownError } from '../../errors.ts'
import type { Command, Results } from '../contract/storage.ts'
import { checkCommand } from '../shared/items/check-command.ts'
import { type CommandResult, type CommandRun, execute, splitIntoRuns } from './commands.ts'
import { beginWrite } from './connection/connections.ts'
import { isRetryable, SourceIdExistsError } from './connection/errors.ts'
import { tryCompleteAlone } from './items/complete-plain.ts'
import { tryLeaseAlone } from './items/lease.ts'
import { tryProduceAlone } from './items/produce.ts'
import { lockQueueDefinitions } from './queues/queue-locks.ts'
import type { StoreContext } from './store-context.ts'
import { type PartitionRef, Transaction } from './transaction.ts'

const attemptsMax = 10
/** Commands that read or change the definition of a queue. */
const definesQueues = new Set<Command['op']>([
  'create-queue',
  'update-queue',
  'delete-queue',
  'replan-redrives',
  'put-consumer',
  'delete-consumer',
])

/**
 * Executes the commands in one transaction, and again if the database rolled it back because of a conflict.
 */
export async function write(store: StoreContext, commands: readonly Command[]): Promise<CommandResult[]> {
  if (commands.length === 0) return []
  for (const command of commands) checkCommand(command)
  const runs = splitIntoRuns(commands)
  const results = await repeatOnConflict(
    store,
    async (hasRepeats) =>
      (await trySingleStatement(store, runs)) ?? writeInTransaction(store, commands, runs, hasRepeats),
  )
  updateCursors(store, commands, results)
  store.vacuum.note(countDeadRows(commands, results))
  return results
}

/** `hasRepeats`: an earlier attempt found letters whose source id already exists. */
async function repeatOnConflict<T>(
  store: StoreContext,
  attemptWrite: (hasRepeats: boolean) => Promise<T>,
): Promise<T> {
  let hasRepeats = false
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptWrite(hasRepeats)
    } catch (error) {
      if (error instanceof SourceIdExistsError) {
        store.repeats.record(error.queueIds, true)
        hasRepeats = true
        continue
      }
      if (!isRetryable(error) || attempt === attemptsMax) throw error
      // A random pause, so that two conflicting writes do not meet again.
      await sleep(store.random() * 2 ** attempt)
    }
  }
}

/**
 * A single statement needs no explicit transaction, which saves two round trips. Undefined: it is not
 * possible.
 */
async function trySingleStatement(
  store: StoreContext,
  [run, ...otherRuns]: readonly CommandRun[],
): Promise<CommandResult[] | undefined> {
  if (run === undefined || otherRuns.length > 0) return undefined
  try {
    switch (run.op) {
      case 'produce':
        return await tryProduceAlone(store, run.commands)
      case 'lease':
        return await tryLeaseAlone(store, run.commands)
      case 'complete':
        return await tryCompleteAlone(store, run.commands)
      default:
        return undefined
    }
  } catch (error) {
    if (!isRetryable(error) && !(error instanceof KnownError)) throw error
    // The cached queue can be out of date. The transaction reads it again, and then decides.
    for (const command of run.commands) {
      if ('queue' in command) store.queueCache.invalidate(String(command.queue))
    }
    return undefined
  }
}

/** A namespace with queues is not deleted, so no queue may be created at the same time. */
function deletesNamespace(command: Command): boolean {
  return command.op === 'change-access' && command.changes.some(({ change }) => change === 'delete-namespace')
}

async function writeInTransaction(
  store: StoreContext,
  commands: readonly Command[],
  runs: readonly CommandRun[],
  hasRepeats: boolean,
): Promise<CommandResult[]> {
  const { connections, queueCache } = store
  const done = await connections.transaction(beginWrite, async (connection) => {
    const transaction = new Transaction(connection, store, hasRepeats)
    if (commands.some((command) => definesQueues.has(command.op) || deletesNamespace(command))) {
      const isDeletion = commands.some(({ op }) => op === 'delete-queue' || op === 'delete-consumer')
      await lockQueueDefinitions(connection, isDeletion ? 'long' : 'short')
    }
    await prepare(transaction, commands)
    const results: CommandResult[] = []
    for (const run of runs) results.push(...(await execute(transaction, run)))
    await transaction.flush()
    return { transaction, results }
  })
  done.transaction.publishToCaches(queueCache)
  return done.results
}

/** Reads all queues in one statement, and locks the partitions that need new ids before all other rows. */
async function prepare(transaction: Transaction, commands: readonly Command[]): Promise<void> {
  const names = new Set<string>()
  for (const command of commands) {
    if ('queue' in command && typeof command.queue === 'string') names.add(command.queue)
  }
  await transaction.load([...names])
  const partitions = new Map<string, PartitionRef>()
  for (const command of commands) {
    if (command.op !== 'produce' && command.op !== 'import' && command.op !== 'retry') continue
    const queueRow = transaction.getLoaded(command.queue)
    const { partition } = command
    // A missing queue or partition is refused when its command is executed, unless an earlier command of the
    // list creates it.
    if (queueRow === undefined || !(partition >= 0 && partition < queueRow.queue.partitions)) continue
    partitions.set(`${queueRow.id}/${partition}`, { queueRow, partition })
  }
  await transaction.lockPartitions([...partitions.values()])
}

/** Drops the lease cursors that may have an available item before them now. */
function updateCursors(
  { cursors }: StoreContext,
  commands: readonly Command[],
  results: readonly CommandResult[],
): void {
  for (let index = 0; index < commands.length; index++) {
    const command = commands[index] as Command
    switch (command.op) {
      case 'lease':
      case 'complete':
      case 'audit':
        break
      case 'extend':
        // Each row has a new version, at another location.
        for (const id of command.ids) cursors.rowLocations.delete(id)
        break
      case 'produce':
        for (const { priority = 0 } of command.items) cursors.dropIfPassed(command, priority)
        break
      case 'import':
        cursors.dropQueue(command.queue)
        break
      case 'redrive':
      case 'dispatch-messages':
        for (const queue of listTargets(command.op, results[index])) cursors.dropQueue(queue)
        break
      // These add no item to a queue that has a cursor.
      case 'restore':
      case 'archive':
      case 'purge-archive':
      case 'discard':
      case 'end-redrives':
      case 'edit-letter':
      case 'replan-redrives':
      case 'postpone-redrives':
      case 'put-campaign':
      case 'freeze-letters':
      case 'freeze-ids':
      case 'skip-letters':
      case 'put-producer':
      case 'put-channel':
      case 'accept-messages':
      case 'put-delivery':
      case 'record-attempts':
      case 'record-delivery-figures':
      case 'prune-deliveries':
      case 'dispatch-scheduled':
      case 'prune-messages':
      case 'record-configuration':
      case 'set-group-lifecycle':
      case 'clear-group-notices':
      case 'record-heartbeats':
      case 'forget-workers':
      case 'add-event-totals':
      case 'put-alert-config':
      case 'delete-alert-config':
      case 'put-alerts':
      case 'remove-alerts':
      case 'prune-alerts':
        break
      case 'advance':
        if ((results[index] as Results['advance']).changes.length > 0) cursors.dropAll()
        break
      default:
        cursors.dropAll()
    }
  }
}

/** The queues that got the items of a command. */
function listTargets(op: 'redrive' | 'dispatch-messages', result: unknown): Set<string> {
  if (op === 'dispatch-messages') {
    return new Set((result as Results['dispatch-messages']).jobs.map(({ queue }) => queue))
  }
  return new Set((result as Results['redrive']).flatMap((each) => (each.isStarted ? [each.queue] : [])))
}

/** The number of rows that the commands with nearly all dead rows have replaced or deleted. */
function countDeadRows(commands: readonly Command[], results: readonly CommandResult[]): number {
  let count = 0
  for (let index = 0; index < commands.length; index++) {
    const command = commands[index] as Command
    if (command.op === 'lease') count += (results[index] as Results['lease']).length
    else if (command.op === 'complete') count += command.ids.length
    else if (command.op === 'retry') count += command.items.length
    else if (command.op === 'advance') count += (results[index] as Results['advance']).changes.length
  }
  return count
}
