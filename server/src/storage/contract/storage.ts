/**
 * The contract of a store. Start here to learn what storage does; each domain has its own file beside this
 * one. SQLite and PostgreSQL implement the contract, and one conformance suite (server/test/conformance)
 * tests both.
 *
 * Every change is a **command**. `write` takes a list of commands and runs them in one transaction, in order:
 * all of them are durable when the promise resolves, and none of them took effect when it rejects.
 * Neighbouring commands of one kind are executed as one batch, so 256 callers cost one statement, not 256. A
 * single call is a list of one.
 *
 * A command that cannot be executed (unknown queue, lost lock) rejects the whole write with a KnownError.
 * `complete`, `retry` and `extend` can also be refused one by one: the result of a refused command gives the
 * reason, the command changed nothing, and the other commands of the list take effect.
 *
 * core/items/transitions.ts decides the next state of each item; a store calls it inside the transaction.
 * Every count changes in the same transaction as the rows that it counts.
 */
import type { QueueName } from '../../core/ids/ids.ts'
import type { Clock } from '../../core/time/instant.ts'
import type { AccessCommand, AccessResults, AccessStore } from './access.ts'
import type { AlertCommand, AlertResults, AlertStore } from './alerts.ts'
import type { ArchiveCommand, ArchiveResults, ArchiveStore } from './archive.ts'
import type { AuditCommand, AuditResults, AuditStore } from './audit.ts'
import type { CampaignCommand, CampaignResults, CampaignStore } from './campaigns.ts'
import type { CountStore } from './counts.ts'
import type { DeliveryCommand, DeliveryResults, DeliveryStore } from './deliveries.ts'
import type { GroupCommand, GroupResults, GroupStore } from './groups.ts'
import type { ItemCommand, ItemResults, ItemStore } from './items.ts'
import type { KafkaCommand, KafkaResults, KafkaStore } from './kafka.ts'
import type { LetterCommand, LetterResults, LetterStore } from './letters.ts'
import type { LockCommand, LockResults } from './locks.ts'
import type { QueueCommand, QueueResults, QueueStore } from './queues.ts'
import type { WebhookCommand, WebhookResults, WebhookStore } from './webhooks.ts'
import type { WorkerCommand, WorkerResults, WorkerStore } from './workers.ts'

export interface Storage
  extends QueueStore,
    ItemStore,
    ArchiveStore,
    CountStore,
    LetterStore,
    GroupStore,
    CampaignStore,
    WebhookStore,
    DeliveryStore,
    AuditStore,
    AccessStore,
    WorkerStore,
    KafkaStore,
    AlertStore {
  readonly kind: 'sqlite' | 'postgres'
  /** The time by which all servers on this store go. */
  readonly clock: StoreClock

  /** Executes the commands in one transaction. The results have the order of the commands. */
  write<const C extends readonly Command[]>(commands: C): Promise<ResultsOf<C>>

  /**
   * Notifies the other servers on this store that items of these queues became available. A notification can
   * be lost, so servers also look at their queues periodically.
   */
  announce(queues: readonly QueueName[]): Promise<void>
  /** Calls the listener for each announcement of another server. Returns a function that stops listening. */
  onAnnounced(listener: (queues: readonly QueueName[]) => void): () => void

  /**
   * Resolves when the store answers and can be written to. Rejects with STORE_UNAVAILABLE, or with STORE_FULL
   * after a write failed for lack of space, until there is space again.
   */
  ping(): Promise<void>
  /** Waits for the writes in progress, then closes the store. A second call is harmless. */
  close(): Promise<void>
}

export interface StoreClock extends Clock {
  /**
   * How far the clock of this machine is ahead of the clock of the store; negative: behind. Null if the store
   * has no clock of its own.
   */
  readMachineOffsetUs(): number | null
}

/** Everything of a store but `write`: changes go through the engine (engine/writes/writer.ts). */
export type StoreReads = Omit<Storage, 'write'>

export type Command =
  | QueueCommand
  | ItemCommand
  | ArchiveCommand
  | AuditCommand
  | LockCommand
  | LetterCommand
  | GroupCommand
  | CampaignCommand
  | AccessCommand
  | WebhookCommand
  | WorkerCommand
  | KafkaCommand
  | DeliveryCommand
  | AlertCommand

/** The type of the result of each command, by its `op`. */
export type Results = QueueResults &
  ItemResults &
  ArchiveResults &
  AuditResults &
  LockResults &
  LetterResults &
  GroupResults &
  CampaignResults &
  AccessResults &
  WebhookResults &
  WorkerResults &
  KafkaResults &
  DeliveryResults &
  AlertResults

export type ResultOf<C extends Command> = Results[C['op']]
export type ResultsOf<C extends readonly Command[]> = { -readonly [K in keyof C]: ResultOf<C[K]> }
