import type { Command } from '../contract/storage.ts'
import { BatchLane, handleOneByOne } from '../shared/batch-lane.ts'
import type { CommandResult } from './commands.ts'

type WriteCommands = (commands: readonly Command[]) => Promise<CommandResult[]>
type PendingWrite = Readonly<{
  commands: readonly Command[]
  weight: number
  resolve(results: CommandResult[]): void
  reject(error: unknown): void
}>

/** Commands that are refused one by one, or never: many writes of them can share a transaction. */
const groupedOps = new Set<Command['op']>(['produce', 'lease', 'complete', 'retry', 'extend'])
/**
 * Commands that are a single statement: the next one is sent while the first is written, and waits for no
 * lock.
 */
const pipelinedOps = new Set<Command['op']>(['produce', 'lease'])
const weightMax = 1_000

/**
 * Group commit: writes of one kind that arrive during a write of that kind share the next transaction. This
 * saves fsyncs, and waiting: writers of one partition lock the same row one after the other.
 */
export class GroupCommit {
  readonly #write: WriteCommands
  readonly #lanes = new Map<Command['op'], BatchLane<PendingWrite>>()

  constructor(write: WriteCommands) {
    this.#write = write
  }

  write(commands: readonly Command[]): Promise<CommandResult[]> {
    const op = commands[0]?.op
    if (op === undefined || !groupedOps.has(op) || commands.some((command) => command.op !== op)) {
      return this.#write(commands)
    }
    return new Promise<CommandResult[]>((resolve, reject) => {
      this.#laneOf(op).add({ commands, weight: countItems(commands), resolve, reject })
    })
  }

  #laneOf(op: Command['op']): BatchLane<PendingWrite> {
    let lane = this.#lanes.get(op)
    if (lane === undefined) {
      const batchesMax = pipelinedOps.has(op) ? 2 : 1
      lane = new BatchLane({ weightMax, batchesMax }, (batch) => this.#writeBatch(batch))
      this.#lanes.set(op, lane)
    }
    return lane
  }

  async #writeBatch(batch: readonly PendingWrite[]): Promise<void> {
    try {
      const [only] = batch
      if (batch.length === 1 && only !== undefined) return only.resolve(await this.#write(only.commands))
      const results = await this.#write(batch.flatMap(({ commands }) => commands))
      let at = 0
      for (const { commands, resolve } of batch) {
        resolve(results.slice(at, at + commands.length))
        at += commands.length
      }
    } catch (error) {
      if (await handleOneByOne(batch, error, (write) => this.#writeBatch([write]))) return
      for (const { reject } of batch) reject(error)
    }
  }
}

/** How many items the commands are about. */
function countItems(commands: readonly Command[]): number {
  let count = 0
  for (const command of commands) {
    if ('items' in command) count += command.items.length
    else if ('ids' in command) count += command.ids.length
    else if ('holders' in command) count += command.holders.length
  }
  return count
}
