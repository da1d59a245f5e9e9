import { setTimeout as sleep } from 'node:timers/promises'
import { KnownError } from '../../errors.ts'
import type { Command, Results } from '../contract/storage.ts'
import { checkCommand } from '../shared/check-command.ts'
import { archive, purgeArchive } from './archive/archive.ts'
import { writeAudit } from './audit/audit.ts'
import { freezeIds, freezeLetters, putCampaign, skipLetters } from './campaigns/campaigns.ts'
import { beginWrite } from './connection/connections.ts'
import { isRetryable, SourceIdExistsError } from './connection/errors.ts'
import { advance } from './items/advance.ts'
import { tryCompleteAlone, tryCompletePlain } from './items/complete-plain.ts'
import { importItems } from './items/import.ts'
import { lease, tryLeaseAlone } from './items/lease.ts'
import { produce, tryProduceAlone } from './items/produce.ts'
import { clear, deleteItems } from './items/remove.ts'
import { complete, extend, retry, unlease } from './items/settle.ts'
import { editLetter } from './letters/edits.ts'
import { discardLetters, restoreLetters } from './letters/letters.ts'
import { postponeRedrives } from './letters/postpone.ts'
import { redriveLetters } from './letters/redrive.ts'
import { endRedrives } from './letters/redrive-ends.ts'
import { replanRedrives } from './letters/replan.ts'
import { acquireLock, fence, releaseLock, renewLock } from './locks/locks.ts'
import { deleteQueue } from './queues/delete-queue.ts'
import { lockQueueDefinitions } from './queues/queue-locks.ts'
import { createQueue, updateQueue } from './queues/queues.ts'
import type { StoreContext } from './store-context.ts'
import { type PartitionRef, Transaction } from './transaction.ts'

type Op = Command['op']
/** Commands of one kind that stand next to each other: written as one batch. */
type Run = { readonly [O in Op]: { op: O; commands: Extract<Command, { op: O }>[] } }[Op]
type AnyResult = Results[Op]

const attemptsMax = 10
/** Commands that read or write what is kept with a queue as a whole. */
const definesQueues = new Set<Op>(['create-queue', 'update-queue', 'delete-queue', 'replan-redrives'])

export async function write(store: StoreContext, commands: readonly Command[]): Promise<AnyResult[]> {
  if (commands.length === 0) return []
  for (const command of commands) checkCommand(command)
  const runs = splitIntoRuns(commands)
  let hasRepeats = false
  for (let attempt = 1; ; attempt++) {
    try {
      const [run] = runs
      const alone = runs.length === 1 && run !== undefined ? await trySingleStatement(store, run) : undefined
      const results = alone ?? (await writeInTransaction(store, commands, runs, hasRepeats))
      updateCursors(store, commands, results)
      store.vacuum.note(countDeadRows(commands, results))
      return results
    } catch (error) {
      if (error instanceof SourceIdExistsError) {
        store.repeats.note(error.queueIds, true)
        hasRepeats = true
        continue
      }
      if (!isRetryable(error) || attempt === attemptsMax) throw error
      // Apart by chance, so that two that met head-on do not meet again.
      await sleep(store.random() * 2 ** attempt)
    }
  }
}

/** What a single statement can do needs no transaction around it, and saves two round trips. */
async function trySingleStatement(store: StoreContext, run: Run): Promise<AnyResult[] | undefined> {
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
    // Refused by what is remembered of the queue, which may be out of date: the transaction will tell.
    if (isRetryable(error) || error instanceof KnownError) {
      for (const command of run.commands)
        if ('queue' in command) store.queueCache.invalidate(String(command.queue))
      return undefined
    }
    throw error
  }
}

async function writeInTransaction(
  store: StoreContext,
  commands: readonly Command[],
  runs: readonly Run[],
  hasRepeats: boolean,
): Promise<AnyResult[]> {
  const { connections, queueCache } = store
  const done = await connections.transaction(beginWrite, async (connection) => {
    const transaction = new Transaction(connection, store, hasRepeats)
    if (commands.some(({ op }) => definesQueues.has(op))) {
      await lockQueueDefinitions(connection, !commands.some(({ op }) => op === 'delete-queue'))
    }
    await prepare(transaction, commands)
    const results: AnyResult[] = []
    for (const run of runs) results.push(...(await execute(transaction, run)))
    await transaction.flush()
    return { transaction, results }
  })
  done.transaction.publishToCaches(queueCache)
  return done.results
}

/** Reads the queues at once, and locks the partitions that will need new ids before anything else. */
async function prepare(transaction: Transaction, commands: readonly Command[]): Promise<void> {
  const names = new Set<string>()
  for (const command of commands)
    if ('queue' in command && typeof command.queue === 'string') names.add(command.queue)
  await transaction.load([...names])
  const places = new Map<string, PartitionRef>()
  for (const command of commands) {
    if (command.op !== 'produce' && command.op !== 'import' && command.op !== 'retry') continue
    const queueRow = transaction.getLoaded(command.queue)
    const { partition } = command
    // What is not there is refused when its turn comes, or made by a command before it.
    if (queueRow === undefined || !(partition >= 0 && partition < queueRow.queue.partitions)) continue
    places.set(`${queueRow.id}/${partition}`, { queueRow, partition })
  }
  await transaction.lockPartitions([...places.values()])
}

async function execute(transaction: Transaction, run: Run): Promise<readonly AnyResult[]> {
  switch (run.op) {
    case 'produce':
      return produce(transaction, run.commands)
    case 'import':
      return importItems(transaction, run.commands)
    case 'lease':
      return lease(transaction, run.commands)
    case 'complete':
      return (await tryCompletePlain(transaction, run.commands)) ?? complete(transaction, run.commands)
    case 'retry':
      return retry(transaction, run.commands)
    case 'extend':
      return extend(transaction, run.commands)
    case 'unlease':
      return unlease(transaction, run.commands)
    case 'audit':
      return writeAudit(transaction, run.commands)
    case 'create-queue':
      return executeEach(run.commands, (command) => createQueue(transaction, command))
    case 'update-queue':
      return executeEach(run.commands, (command) => updateQueue(transaction, command))
    case 'delete-queue':
      return executeEach(run.commands, (command) => deleteQueue(transaction, command))
    case 'advance':
      return executeEach(run.commands, (command) => advance(transaction, command))
    case 'delete':
      return executeEach(run.commands, (command) => deleteItems(transaction, command))
    case 'clear':
      return executeEach(run.commands, (command) => clear(transaction, command))
    case 'archive':
      return executeEach(run.commands, (command) => archive(transaction, command))
    case 'acquire-lock':
      return executeEach(run.commands, (command) => acquireLock(transaction, command))
    case 'renew-lock':
      return executeEach(run.commands, (command) => renewLock(transaction, command))
    case 'release-lock':
      return executeEach(run.commands, (command) => releaseLock(transaction, command))
    case 'fence':
      return executeEach(run.commands, (command) => fence(transaction, command))
    case 'redrive':
      return executeEach(run.commands, (command) => redriveLetters(transaction, command))
    case 'end-redrives':
      return endRedrives(transaction, run.commands)
    case 'discard':
      return executeEach(run.commands, (command) => discardLetters(transaction, command))
    case 'restore':
      return executeEach(run.commands, (command) => restoreLetters(transaction, command))
    case 'edit-letter':
      return executeEach(run.commands, (command) => editLetter(transaction, command))
    case 'replan-redrives':
      return executeEach(run.commands, (command) => replanRedrives(transaction, command))
    case 'postpone-redrives':
      return executeEach(run.commands, (command) => postponeRedrives(transaction, command))
    case 'purge-archive':
      return executeEach(run.commands, (command) => purgeArchive(transaction, command))
    case 'put-campaign':
      return executeEach(run.commands, (command) => putCampaign(transaction, command))
    case 'freeze-letters':
      return executeEach(run.commands, (command) => freezeLetters(transaction, command))
    case 'freeze-ids':
      return executeEach(run.commands, (command) => freezeIds(transaction, command))
    case 'skip-letters':
      return executeEach(run.commands, (command) => skipLetters(transaction, command))
  }
}

async function executeEach<C, R>(commands: readonly C[], act: (command: C) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const command of commands) results.push(await act(command))
  return results
}

/** What may have put an item before the place where the next lease begins to look. */
function updateCursors(
  { cursors }: StoreContext,
  commands: readonly Command[],
  results: readonly AnyResult[],
): void {
  for (let index = 0; index < commands.length; index++) {
    const command = commands[index] as Command
    switch (command.op) {
      case 'lease':
      case 'complete':
      case 'audit':
        break
      case 'extend':
        // Each is another version of its row now, in another place.
        for (const id of command.ids) cursors.places.forget(id)
        break
      case 'produce':
        for (const { priority = 0 } of command.items) cursors.makeRoom(command, priority)
        break
      case 'import':
        cursors.drop(command.queue)
        break
      case 'redrive':
        for (const queue of targetsOf(results[index] as Results['redrive'])) cursors.drop(queue)
        break
      // These put no item into a queue that is leased from where the last lease ended.
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
        break
      case 'advance':
        if ((results[index] as Results['advance']).changes.length > 0) cursors.dropAll()
        break
      default:
        cursors.dropAll()
    }
  }
}

function targetsOf(redriven: Results['redrive']): Set<string> {
  return new Set(redriven.flatMap((result) => (result.isStarted ? [result.queue] : [])))
}

/** Nearly all dead rows come from these; the others are few. */
function countDeadRows(commands: readonly Command[], results: readonly AnyResult[]): number {
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

function splitIntoRuns(commands: readonly Command[]): Run[] {
  const runs: { op: Op; commands: Command[] }[] = []
  for (const command of commands) {
    const last = runs.at(-1)
    if (last?.op === command.op) last.commands.push(command)
    else runs.push({ op: command.op, commands: [command] })
  }
  // Each list holds commands of its own op only, which the type of a mixed list cannot say.
  return runs as Run[]
}
