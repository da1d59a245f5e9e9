/**
 * The only code that calls `storage.write`. Every change of the store passes here, so that its callers need
 * not think of the consequences. After a write is committed, the writer wakes leases that wait for its
 * items, on this server and on others, measures how long the store took, and emits events. A write that is
 * rejected is only measured.
 */
import type { QueueName } from '../../core/ids/ids.ts'
import type { Import } from '../../storage/contract/items.ts'
import type { Command, ResultOf, ResultsOf, Storage } from '../../storage/contract/storage.ts'
import { type EngineEvent, readChanges, toEvents } from '../events.ts'
import type { WriteObserver } from '../tracing/trace-writes.ts'

export interface Writer {
  /** One transaction: durable when it resolves, undone when it rejects. */
  write<const C extends readonly Command[]>(commands: C): Promise<ResultsOf<C>>
}

export type WriterOptions = Readonly<{
  storage: Pick<Storage, 'write'>
  /** Items can be leased now. A number that is too high is harmless. */
  onAvailable(queue: QueueName, partition: number, count: number): void
  /** Items of the queue expired: some of them were available, others leased. */
  onExpired(queue: QueueName): void
  /** Items were stored that may become due, for example because they expire. */
  onStored(): void
  onEvent(event: EngineEvent): void
  /** How long the store took for a number of commands, whether it wrote or rejected. */
  onWrite?(command: Command['op'], seconds: number, commands: number): void
  /** Creates spans. Undefined without tracing. */
  onCommitted?: WriteObserver
  onError(error: unknown): void
}>

export function createWriter(options: WriterOptions): Writer {
  const { storage, onWrite, onEvent, onCommitted, onError } = options

  const measure = (commands: readonly Command[], startedAt: number): void => {
    onWrite?.(findMainCommand(commands), (performance.now() - startedAt) / 1_000, commands.length)
  }
  const follow = (commands: readonly Command[], results: readonly unknown[], startedAt: number): void => {
    for (let at = 0; at < commands.length; at++) {
      const command = commands[at] as Command
      const result = results[at] as ResultOf<Command>
      notify(command, result, options)
      for (const event of toEvents(command, result)) onEvent(event)
      if (onCommitted !== undefined) onCommitted(command, result, startedAt)
    }
  }
  return {
    write: (commands) => {
      const startedAt = performance.now()
      return storage.write(commands).then(
        (results) => {
          try {
            measure(commands, startedAt)
            follow(commands, results as readonly unknown[], startedAt)
          } catch (error) {
            // The write is committed, so the caller gets its results whatever an observer did.
            onError(error)
          }
          return results
        },
        (error: unknown) => {
          measure(commands, startedAt)
          throw error
        },
      )
    },
  }
}

/**
 * Reports items that became available. `produce`, `lease` and `unlease` are missing here: the queue that
 * writes them counts its items exactly (queue-runtime.ts).
 */
function notify(command: Command, result: unknown, options: WriterOptions): void {
  switch (command.op) {
    case 'retry':
    case 'advance':
      notifyOfChanges(result as ResultOf<typeof command>, options)
      break
    case 'import':
      notifyOfImport(command, result as ResultOf<typeof command>, options)
      break
    case 'redrive':
      for (const redriven of result as ResultOf<typeof command>) {
        if (redriven.isStarted) options.onAvailable(redriven.queue, redriven.partition, 1)
      }
      break
    case 'dispatch-messages':
      for (const { queue, count } of (result as ResultOf<typeof command>).jobs) {
        options.onAvailable(queue, 0, count)
      }
      break
    case 'cancel-redrives':
      for (const queue of new Set(
        (result as ResultOf<typeof command>).flatMap(({ target }) => target ?? []),
      )) {
        options.onExpired(queue)
      }
  }
}

function notifyOfChanges(
  result: ResultOf<Extract<Command, { op: 'retry' | 'advance' }>>,
  { onAvailable, onExpired }: WriterOptions,
): void {
  const shrunk = new Set<string>()
  for (const { to, queue, partition, cause, fromQueue } of readChanges(result)) {
    // A letter that returned may be DEAD. Then a lease asks the store once and gets nothing.
    if (to === 'waiting' || to === 'moved' || to === 'returned') onAvailable(queue, partition, 1)
    if (cause === 'expire') shrunk.add(fromQueue)
  }
  for (const queue of shrunk) onExpired(queue)
}

function notifyOfImport(
  { queue, partition, items }: Import,
  imported: ResultOf<Import>,
  { onAvailable, onStored }: WriterOptions,
): void {
  const isStored = (at: number) => imported[at]?.id != null
  const available = items.filter(
    (item, at) => isStored(at) && item.availableAt == null && item.lease == null,
  ).length
  if (available > 0) onAvailable(queue, partition, available)
  // Letters do not expire, and nothing else becomes due with them: a capture must not start a pass of the
  // due scheduler.
  if (items.some((item, at) => isStored(at) && item.origin == null)) onStored()
}

/** Commands that accompany others in a write. The one with the highest rank names the write. */
const ranks: Partial<Record<Command['op'], number>> = {
  fence: 0,
  'renew-lock': 0,
  audit: 1,
  'put-campaign': 2,
}
const rankMax = 3

/** The kind of command that a write is measured as: a write with several kinds is measured once. */
function findMainCommand(commands: readonly Command[]): Command['op'] {
  let main: Command['op'] = 'fence'
  let rank = -1
  for (const { op } of commands) {
    const own = ranks[op] ?? rankMax
    if (own > rank) [main, rank] = [op, own]
    if (rank === rankMax) break
  }
  return main
}
