import { KnownError } from '../../errors.ts'
import type { Command, Results } from '../contract/storage.ts'
import { BatchLane } from '../shared/batch-lane.ts'

type Result = Results[Command['op']]
type Write = (commands: readonly Command[]) => Promise<Result[]>
type PendingWrite = Readonly<{
  commands: readonly Command[]
  weight: number
  resolve(results: Result[]): void
  reject(error: unknown): void
}>

/** Commands that are refused one by one, or not at all: many lists of them can share a transaction. */
const gathered = new Set<Command['op']>(['produce', 'lease', 'complete', 'retry', 'extend'])
/** Those that are one statement: the next is sent while the first is written, and waits for nobody's locks. */
const pipelined = new Set<Command['op']>(['produce', 'lease'])
const weightMax = 1_000

/**
 * Group commit: lists of one kind that arrive while one of that kind is on its way to the disk are
 * written together next. Besides the fsync that spares what they would spend waiting for each other:
 * writers of one partition take turns at its row.
 */
export class GroupCommit {
  readonly #write: Write
  readonly #lanes = new Map<Command['op'], BatchLane<PendingWrite>>()

  constructor(write: Write) {
    this.#write = write
  }

  write(commands: readonly Command[]): Promise<Result[]> {
    const op = commands[0]?.op
    if (op === undefined || !gathered.has(op) || commands.some((command) => command.op !== op)) {
      return this.#write(commands)
    }
    return new Promise<Result[]>((resolve, reject) => {
      this.#laneOf(op).add({ commands, weight: weightOf(commands), resolve, reject })
    })
  }

  #laneOf(op: Command['op']): BatchLane<PendingWrite> {
    let lane = this.#lanes.get(op)
    if (lane === undefined) {
      const batchesMax = pipelined.has(op) ? 2 : 1
      lane = new BatchLane({ weightMax, batchesMax }, (batch) => this.#writeTogether(batch))
      this.#lanes.set(op, lane)
    }
    return lane
  }

  async #writeTogether(batch: readonly PendingWrite[]): Promise<void> {
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
      if (batch.length === 1 || !isOfOneList(error)) for (const { reject } of batch) reject(error)
      // One of them was refused, and with it all. Which one shows when each is written by itself.
      else for (const one of batch) await this.#writeTogether([one])
    }
  }
}

/** How many items a list is about. */
function weightOf(commands: readonly Command[]): number {
  let weight = 0
  for (const command of commands) {
    if ('items' in command) weight += command.items.length
    else if ('ids' in command) weight += command.ids.length
    else if ('holders' in command) weight += command.holders.length
  }
  return weight
}

/** Refused because of what it asks, and not because the store could not do it: then nothing was kept. */
function isOfOneList(error: unknown): boolean {
  return error instanceof KnownError && error.status < 500
}
