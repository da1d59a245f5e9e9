import { KnownError } from '../../errors.ts'
import type { Command, Results } from '../storage.ts'

type Result = Results[Command['op']]
type Write = (commands: readonly Command[]) => Promise<Result[]>
type Waiting = Readonly<{
  commands: readonly Command[]
  weight: number
  resolve(results: Result[]): void
  reject(error: unknown): void
}>
type Lane = { isBusy: boolean; waiting: Waiting[] }

/** Commands that are refused one by one, or not at all: many lists of them can share a transaction. */
const gathered = new Set<Command['op']>(['produce', 'lease', 'complete', 'retry', 'extend'])
const weightMax = 1_000

/**
 * Group commit: lists of one kind that arrive while one of that kind is on its way to the disk are
 * written together next. Besides the fsync that spares what they would spend waiting for each other:
 * writers of one partition take turns at its row.
 */
export class Gatherer {
  readonly #write: Write
  readonly #lanes = new Map<Command['op'], Lane>()

  constructor(write: Write) {
    this.#write = write
  }

  write(commands: readonly Command[]): Promise<Result[]> {
    const op = commands[0]?.op
    if (op === undefined || !gathered.has(op) || commands.some((command) => command.op !== op)) {
      return this.#write(commands)
    }
    let lane = this.#lanes.get(op)
    if (lane === undefined) {
      lane = { isBusy: false, waiting: [] }
      this.#lanes.set(op, lane)
    }
    const { waiting } = lane
    const written = new Promise<Result[]>((resolve, reject) => {
      waiting.push({ commands, weight: weightOf(commands), resolve, reject })
    })
    if (!lane.isBusy) void this.#drain(lane)
    return written
  }

  async #drain(lane: Lane): Promise<void> {
    lane.isBusy = true
    // Those of the same turn of the event loop go together from the start.
    await Promise.resolve()
    while (lane.waiting.length > 0) await this.#writeTogether(takeBatch(lane.waiting))
    lane.isBusy = false
  }

  async #writeTogether(batch: readonly Waiting[]): Promise<void> {
    try {
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

function takeBatch(waiting: Waiting[]): Waiting[] {
  let weight = 0
  let count = 0
  while (
    count < waiting.length &&
    (count === 0 || weight + (waiting[count] as Waiting).weight <= weightMax)
  ) {
    weight += (waiting[count] as Waiting).weight
    count++
  }
  return waiting.splice(0, count)
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
